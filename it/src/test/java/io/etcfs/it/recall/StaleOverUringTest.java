package io.etcfs.it.recall;

import io.etcfs.it.cluster.OnCluster;

@OnCluster(transport = "uring")
class StaleOverUringTest extends StaleTest {}
