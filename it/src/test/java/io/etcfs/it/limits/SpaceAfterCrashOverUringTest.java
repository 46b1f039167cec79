package io.etcfs.it.limits;

import io.etcfs.it.cluster.OnCluster;

@OnCluster(transport = "uring")
class SpaceAfterCrashOverUringTest extends SpaceAfterCrashTest {}
