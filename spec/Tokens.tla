------------------------------- MODULE Tokens -------------------------------
(***************************************************************************)
(* Tokens, sessions and the publishing pipeline.                           *)
(*                                                                         *)
(* etcd is an atomic store.  Each domain is one register whose values are  *)
(* the numbers of the writes made to it (0 = never written), numbered      *)
(* across all domains in the order in which they were applied.  A publish  *)
(* transaction is a message that etcd may apply late; acquiring is atomic. *)
(* Time: Lapse(n) is the moment at which node n's trust deadline passes    *)
(* on its own clock; etcd expires the lease only after it.  A paused node  *)
(* is one that takes no step.  The kernel's cache answers without the      *)
(* daemon, so it answers for a paused daemon too.                          *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, Sequences, TLC

CONSTANTS
  Node, Dom,
  MaxWrites, MaxSess, MaxFence, MaxCrash, MaxLate,
  \* what a publish transaction compares
  SessionGuard,      \* the session key's identity
  GenGuard,          \* the node's fencing generation
  MarkerGuard,       \* the node's batch counter still is the one before: a batch
                     \* commits once, and its outcome is settled before the next
  KeyGuard,          \* a handover also compares that the giver's own key exists
  \* rules
  OwnerCheck,        \* resurrection: "none", "value" or "revision" of owner:
  SharedStamps,      \* taking S from an unclean owner rewrites owner:
  HandoverPublishes, \* the token goes in the transaction that publishes
  SharedGiveChecks,  \* a shared holder hands X on only if it was the last
  KernelDrop,        \* the kernel's cache is dropped before the token goes
  KernelBound,       \* "none", "drop" at the deadline, "deadline" (validity)
  AllOrNothing,      \* a journal survives whole or not at all
  RestartWaits,      \* a new process waits for the old session key to vanish
  ClockRuns          \* the trust deadline passes before the lease expires

NoNode == "nobody"
NV == MaxWrites + 1                   \* "nothing cached"
NoHo == [d |-> "-", old |-> "none", to |-> NoNode, mode |-> "none", ts |-> 0]
NoMsg == [n |-> NoNode, s |-> 0, g |-> 0, ents |-> <<>>, ho |-> NoHo]

VARIABLES
  \* etcd
  sess,     \* session key of a node: 0, or its identity
  gen,      \* fencing generation
  lock,     \* lock[d][n]: "none", "S", "X"
  owner,    \* owner[d]: <<node, generation>>
  clean,    \* owner[d] was given up, not lost
  pub,      \* pub[d]: the published value
  net,      \* publish transactions on their way
  \* nodes
  up, trust, mine, myGen,
  tok,      \* what the node believes to hold
  lost,     \* what it held when its session ended, not yet settled
  seen,     \* owner[d] as read when the token was taken
  touched,  \* owner[d] was written since (compare of its revision)
  cache, kc,\* daemon's and kernel's cached value
  jr,       \* journal: unpublished <<d, v>>
  pend, pst,\* the batch in flight and what the node knows of it
  \* bounds and history
  nsess, nfence, ncrash, nlate,
  wc, wr, pubd, dropc, dead, bad, stale

etcdVars  == <<sess, gen, lock, owner, clean, pub, net>>
tokVars   == <<tok, lost, seen, touched>>
nodeVars  == <<up, trust, mine, myGen>>
cacheVars == <<cache, kc>>
pipeVars  == <<jr, pend, pst>>
bndVars   == <<nsess, nfence, ncrash, nlate>>
histVars  == <<wc, wr, pubd, dropc, dead, bad, stale>>
vars == <<sess, gen, lock, owner, clean, pub, net, up, trust, mine, myGen,
          tok, lost, seen, touched, cache, kc, jr, pend, pst,
          nsess, nfence, ncrash, nlate, wc, wr, pubd, dropc, dead, bad, stale>>

Init ==
  /\ sess = [n \in Node |-> 0] /\ gen = [n \in Node |-> 0]
  /\ lock = [d \in Dom |-> [n \in Node |-> "none"]]
  /\ owner = [d \in Dom |-> <<NoNode, 0>>] /\ clean = [d \in Dom |-> TRUE]
  /\ pub = [d \in Dom |-> 0] /\ net = {}
  /\ up = [n \in Node |-> FALSE] /\ trust = [n \in Node |-> FALSE]
  /\ mine = [n \in Node |-> 0] /\ myGen = [n \in Node |-> 0]
  /\ tok = [n \in Node |-> [d \in Dom |-> "none"]]
  /\ lost = [n \in Node |-> [d \in Dom |-> "none"]]
  /\ seen = [n \in Node |-> [d \in Dom |-> <<NoNode, 0>>]]
  /\ touched = [n \in Node |-> [d \in Dom |-> TRUE]]
  /\ cache = [n \in Node |-> [d \in Dom |-> NV]]
  /\ kc = [n \in Node |-> [d \in Dom |-> NV]]
  /\ jr = [n \in Node |-> <<>>] /\ pend = [n \in Node |-> NoMsg]
  /\ pst = [n \in Node |-> "none"]
  /\ nsess = 0 /\ nfence = 0 /\ ncrash = 0 /\ nlate = 0
  /\ wc = 0 /\ wr = <<>> /\ pubd = {} /\ dropc = [v \in 1..MaxWrites |-> 0]
  /\ dead = [d \in Dom |-> {}] /\ bad = FALSE /\ stale = FALSE

---------------------------------------------------------------------------
Live(n) == up[n] /\ trust[n] /\ mine[n] # 0
Guarded(n) == mine[n] # 0 /\ sess[n] = mine[n] /\ gen[n] = myGen[n]
Conflict(d, n, mode) ==
  \E m \in Node \ {n} : lock[d][m] = "X" \/ (mode = "X" /\ lock[d][m] = "S")
Giving(n, d) == pst[n] # "none" /\ pend[n].ho.d = d
Settled(n) == \A d \in Dom : lost[n][d] # "X"

LastOf(ents, d) == LET is == {i \in 1..Len(ents) : ents[i][1] = d}
                   IN IF is = {} THEN 0 ELSE ents[CHOOSE i \in is : \A j \in is : j <= i][2]

\* owner[d] is written: every other node's remembered revision is out of date
\* (the parts of owner: that the configured check does not use stay constant)
Turn(t) == IF OwnerCheck = "revision" THEN t ELSE touched
Stamp(d, n) == IF OwnerCheck = "value" THEN [owner EXCEPT ![d] = <<n, gen[n]>>] ELSE owner
See(n, d, o) == IF OwnerCheck = "value" THEN [seen EXCEPT ![n][d] = o] ELSE seen
Touch(n, d) == touched' = Turn([m \in Node |-> [e \in Dom |->
                 IF e = d THEN m # n ELSE touched[m][e]]])

\* A read returned v: later writes of d that were already made must never show
Observe(d, v) ==
  /\ bad' = (bad \/ v \in dead[d])
  /\ dead' = [dead EXCEPT ![d] = @ \cup {u \in (v+1)..wc : wr[u][2] = d}]

---------------------------------------------------------------------------
(* time, sessions *)
\* (the kernel's entries run out with it if they were given that validity)
Lapse(n) == /\ up[n] /\ trust[n] /\ trust' = [trust EXCEPT ![n] = FALSE]
            /\ kc' = IF KernelBound = "deadline" THEN [kc EXCEPT ![n] = [d \in Dom |-> NV]] ELSE kc
            /\ UNCHANGED <<etcdVars, tokVars, up, mine, myGen, cache, pipeVars, bndVars, histVars>>

\* All keys of the lease go at once.  Transactions guarded by the session can
\* not commit any more; they are taken off the wire here.
Expire(n) ==
  /\ sess[n] # 0 /\ (ClockRuns => ~trust[n])
  /\ sess' = [sess EXCEPT ![n] = 0]
  /\ lock' = [d \in Dom |-> [lock[d] EXCEPT ![n] = "none"]]
  /\ IF SessionGuard
       THEN /\ net' = {m \in net : m.n # n}
            /\ pst' = IF pst[n] = "sent" THEN [pst EXCEPT ![n] = "fail"] ELSE pst
       ELSE UNCHANGED <<net, pst>>
  /\ UNCHANGED <<gen, owner, clean, pub, tokVars, nodeVars, cacheVars, jr, pend, bndVars, histVars>>

\* The node re-establishes its session after its lease ended
NewSession(n) ==
  /\ up[n] /\ mine[n] # 0 /\ sess[n] # mine[n] /\ sess[n] = 0 /\ gen[n] = myGen[n]
  /\ pst[n] = "none" /\ nsess < MaxSess
  /\ nsess' = nsess + 1
  /\ sess' = [sess EXCEPT ![n] = nsess + 1] /\ mine' = [mine EXCEPT ![n] = nsess + 1]
  /\ trust' = [trust EXCEPT ![n] = TRUE]
  /\ lost' = [lost EXCEPT ![n] = [d \in Dom |-> IF tok[n][d] # "none" THEN tok[n][d] ELSE lost[n][d]]]
  /\ tok' = [tok EXCEPT ![n] = [d \in Dom |-> "none"]]
  /\ UNCHANGED <<gen, lock, owner, clean, pub, net, up, myGen, seen, touched, cacheVars, pipeVars, nfence, ncrash, nlate, histVars>>

(* resurrection: one token at a time, the pipeline waits for all of X *)
Retake(n, d) ==
  /\ Live(n) /\ Guarded(n) /\ lost[n][d] # "none"
  /\ ~Conflict(d, n, lost[n][d])
  /\ CASE OwnerCheck = "none" -> TRUE
       [] OwnerCheck = "value" -> owner[d] = seen[n][d]
       [] OwnerCheck = "revision" -> ~touched[n][d]
  /\ lock' = [lock EXCEPT ![d][n] = lost[n][d]]
  /\ tok' = [tok EXCEPT ![n][d] = lost[n][d]]
  /\ lost' = [lost EXCEPT ![n][d] = "none"]
  /\ IF lost[n][d] = "X"
       THEN /\ owner' = Stamp(d, n) /\ clean' = [clean EXCEPT ![d] = FALSE]
            /\ seen' = See(n, d, <<n, gen[n]>>) /\ Touch(n, d)
       ELSE UNCHANGED <<owner, clean, seen, touched>>
  /\ UNCHANGED <<sess, gen, pub, net, nodeVars, cacheVars, pipeVars, bndVars, histVars>>

DropShared(n, d) ==
  /\ up[n] /\ lost[n][d] = "S"
  /\ lost' = [lost EXCEPT ![n][d] = "none"]
  /\ cache' = [cache EXCEPT ![n][d] = NV] /\ kc' = [kc EXCEPT ![n][d] = NV]
  /\ UNCHANGED <<etcdVars, tok, seen, touched, nodeVars, pipeVars, bndVars, histVars>>

InJr(n, v) == \E i \in 1..Len(jr[n]) : jr[n][i][2] = v
\* not everything could be taken back: drop what was not published
DropJournal(n) ==
  /\ up[n] /\ pst[n] = "none" /\ ~Settled(n)
  /\ LET gone == {d \in Dom : lost[n][d] = "X"}
         Keep(e) == ~AllOrNothing /\ e[1] \notin gone
     IN /\ jr' = [jr EXCEPT ![n] = SelectSeq(@, Keep)]
        /\ dropc' = [v \in 1..MaxWrites |->
             IF InJr(n, v) /\ v \notin pubd /\ dropc[v] = 0
                /\ (AllOrNothing \/ wr[v][2] \in gone) THEN wc + 1 ELSE dropc[v]]
        /\ lost' = [lost EXCEPT ![n] = [d \in Dom |-> IF d \in gone THEN "none" ELSE lost[n][d]]]
        /\ cache' = [cache EXCEPT ![n] = [d \in Dom |-> IF AllOrNothing \/ d \in gone THEN NV ELSE cache[n][d]]]
        /\ kc' = [kc EXCEPT ![n] = [d \in Dom |-> IF AllOrNothing \/ d \in gone THEN NV ELSE kc[n][d]]]
  /\ UNCHANGED <<etcdVars, tok, seen, touched, nodeVars, pend, pst, bndVars, wc, wr, pubd, dead, bad, stale>>

---------------------------------------------------------------------------
(* tokens *)
AcqS(n, d) ==
  /\ Live(n) /\ Guarded(n) /\ tok[n][d] = "none" /\ lost[n][d] = "none" /\ ~Giving(n, d)
  /\ lock[d][n] = "none" /\ ~Conflict(d, n, "S")
  /\ lock' = [lock EXCEPT ![d][n] = "S"] /\ tok' = [tok EXCEPT ![n][d] = "S"]
  /\ seen' = See(n, d, owner[d])
  /\ IF SharedStamps /\ ~clean[d]
       THEN Touch(n, d) /\ clean' = [clean EXCEPT ![d] = TRUE]
       ELSE touched' = Turn([touched EXCEPT ![n][d] = FALSE]) /\ UNCHANGED clean
  /\ cache' = [cache EXCEPT ![n][d] = NV]
  /\ UNCHANGED <<sess, gen, owner, pub, net, nodeVars, lost, kc, pipeVars, bndVars, histVars>>

AcqX(n, d) ==
  /\ Live(n) /\ Guarded(n) /\ tok[n][d] \in {"none", "S"} /\ lost[n][d] = "none" /\ ~Giving(n, d)
  /\ lock[d][n] = tok[n][d] /\ ~Conflict(d, n, "X")
  /\ lock' = [lock EXCEPT ![d][n] = "X"] /\ tok' = [tok EXCEPT ![n][d] = "X"]
  /\ owner' = Stamp(d, n) /\ clean' = [clean EXCEPT ![d] = FALSE]
  /\ seen' = See(n, d, <<n, gen[n]>>) /\ Touch(n, d)
  /\ cache' = IF tok[n][d] = "S" THEN cache ELSE [cache EXCEPT ![n][d] = NV]
  /\ UNCHANGED <<sess, gen, pub, net, nodeVars, lost, kc, pipeVars, bndVars, histVars>>

\* a waiter sees (watch) that a key was put for it
Learn(n, d) ==
  /\ Live(n) /\ Guarded(n) /\ tok[n][d] = "none" /\ lost[n][d] = "none" /\ ~Giving(n, d)
  /\ lock[d][n] # "none"
  /\ tok' = [tok EXCEPT ![n][d] = lock[d][n]]
  /\ seen' = See(n, d, owner[d]) /\ touched' = Turn([touched EXCEPT ![n][d] = FALSE])
  /\ cache' = [cache EXCEPT ![n][d] = NV]
  /\ UNCHANGED <<etcdVars, nodeVars, lost, kc, pipeVars, bndVars, histVars>>

---------------------------------------------------------------------------
(* operations *)
Value(n, d) == IF cache[n][d] # NV THEN cache[n][d]   \* else etcd, under its own changes
               ELSE IF LastOf(jr[n], d) # 0 THEN LastOf(jr[n], d) ELSE pub[d]

Read(n, d) ==
  /\ Live(n) /\ tok[n][d] # "none"
  /\ cache' = [cache EXCEPT ![n][d] = Value(n, d)]
  /\ kc' = [kc EXCEPT ![n][d] = Value(n, d)]
  /\ Observe(d, Value(n, d))
  /\ UNCHANGED <<etcdVars, tokVars, nodeVars, pipeVars, bndVars, wc, wr, pubd, dropc, stale>>

KernelRead(n, d) ==
  /\ up[n] /\ kc[n][d] # NV
  /\ Observe(d, kc[n][d])
  /\ UNCHANGED <<etcdVars, tokVars, nodeVars, cacheVars, pipeVars, bndVars, wc, wr, pubd, dropc, stale>>

KernelLapse(n) ==
  /\ KernelBound = "drop" /\ up[n] /\ ~trust[n] /\ (\E d \in Dom : kc[n][d] # NV)
  /\ kc' = [kc EXCEPT ![n] = [d \in Dom |-> NV]]
  /\ UNCHANGED <<etcdVars, tokVars, nodeVars, cache, pipeVars, bndVars, histVars>>

Write(n, d) ==
  /\ Live(n) /\ tok[n][d] = "X" /\ Settled(n) /\ wc < MaxWrites
  /\ wc' = wc + 1 /\ wr' = Append(wr, <<n, d>>)
  /\ jr' = [jr EXCEPT ![n] = Append(@, <<d, wc + 1>>)]
  /\ cache' = [cache EXCEPT ![n][d] = wc + 1] /\ kc' = [kc EXCEPT ![n][d] = wc + 1]
  /\ UNCHANGED <<etcdVars, tokVars, nodeVars, pend, pst, bndVars, pubd, dropc, dead, bad, stale>>

---------------------------------------------------------------------------
(* pipeline *)
Send(n, ho) ==
  /\ up[n] /\ mine[n] # 0 /\ pst[n] = "none" /\ Settled(n)
  /\ (ho = NoHo => jr[n] # <<>>)
  /\ LET ents == IF ho # NoHo /\ ~HandoverPublishes THEN <<>> ELSE jr[n]
         m == [n |-> n, s |-> mine[n], g |-> myGen[n], ents |-> ents, ho |-> ho]
     IN /\ m \notin net
        /\ net' = net \cup {m} /\ pend' = [pend EXCEPT ![n] = m]
  /\ pst' = [pst EXCEPT ![n] = "sent"]
  /\ IF ho = NoHo THEN UNCHANGED <<tok, cache, kc>>
     ELSE /\ tok' = [tok EXCEPT ![n][ho.d] = "none"]
          /\ cache' = [cache EXCEPT ![n][ho.d] = NV]
          /\ kc' = IF KernelDrop THEN [kc EXCEPT ![n][ho.d] = NV] ELSE kc
  /\ UNCHANGED <<sess, gen, lock, owner, clean, pub, lost, seen, touched, nodeVars, jr, bndVars, histVars>>

Publish(n) == Send(n, NoHo)
Give(n, d) ==
  /\ tok[n][d] # "none"
  /\ \/ Send(n, [d |-> d, old |-> tok[n][d], to |-> NoNode, mode |-> "none", ts |-> 0])
     \/ \E m \in Node \ {n}, mode \in {"S", "X"} :
          /\ sess[m] # 0 /\ lock[d][m] = "none"
          /\ Send(n, [d |-> d, old |-> tok[n][d], to |-> m, mode |-> mode, ts |-> sess[m]])

Apply(m) ==
  LET n == m.n
      d == m.ho.d
      ok == /\ (SessionGuard => sess[n] = m.s) /\ (GenGuard => gen[n] = m.g)
            /\ (KeyGuard /\ m.ho # NoHo => lock[d][n] = m.ho.old)
      \* who gets the token: nobody if the waiter's lease is gone
      to == IF /\ m.ho.to # NoNode /\ sess[m.ho.to] = m.ho.ts
               /\ ~(\E k \in Node \ {n, m.ho.to} : SharedGiveChecks /\
                      (lock[d][k] = "X" \/ (m.ho.mode = "X" /\ lock[d][k] = "S")))
            THEN m.ho.to ELSE NoNode
  IN
  /\ m \in net /\ net' = net \ {m}
  /\ pst' = IF pst[n] = "sent" /\ pend[n] = m
              THEN [pst EXCEPT ![n] = IF ok THEN "ok" ELSE "fail"] ELSE pst
  /\ IF ~ok THEN UNCHANGED <<pub, pubd, lock, owner, clean, touched, stale>>
     ELSE
      /\ stale' = (stale \/ sess[n] # m.s \/ gen[n] # m.g)
      /\ pub' = [e \in Dom |-> IF LastOf(m.ents, e) # 0 THEN LastOf(m.ents, e) ELSE pub[e]]
      /\ pubd' = pubd \cup {m.ents[i][2] : i \in 1..Len(m.ents)}
      /\ IF m.ho = NoHo THEN UNCHANGED <<lock, owner, clean, touched>>
         ELSE /\ lock' = [lock EXCEPT ![d] = [k \in Node |->
                   CASE k = n -> "none" [] k = to -> m.ho.mode [] OTHER -> lock[d][k]]]
              /\ IF to # NoNode /\ m.ho.mode = "X"
                   THEN /\ owner' = Stamp(d, to)
                        /\ clean' = [clean EXCEPT ![d] = FALSE]
                        /\ touched' = Turn([k \in Node |-> [touched[k] EXCEPT ![d] = TRUE]])
                   ELSE /\ clean' = IF m.ho.old = "X" THEN [clean EXCEPT ![d] = TRUE] ELSE clean
                        /\ UNCHANGED <<owner, touched>>
  /\ UNCHANGED <<sess, gen, tok, lost, seen, nodeVars, cacheVars, jr, pend, bndVars, wc, wr, dropc, dead, bad>>

Forget(n) == /\ pst' = [pst EXCEPT ![n] = "none"] /\ pend' = [pend EXCEPT ![n] = NoMsg]
\* the handed over token is still ours
Back(n) == IF pend[n].ho = NoHo \/ tok[n][pend[n].ho.d] # "none" THEN tok
           ELSE [tok EXCEPT ![n][pend[n].ho.d] = pend[n].ho.old]

Done(n) ==
  /\ up[n] /\ pst[n] = "ok"
  /\ jr' = [jr EXCEPT ![n] = SubSeq(@, Len(pend[n].ents) + 1, Len(@))]
  /\ touched' = IF pend[n].ho = NoHo THEN touched   \* nothing is remembered of a token given up
                ELSE Turn([touched EXCEPT ![n][pend[n].ho.d] = TRUE])
  /\ Forget(n)
  /\ UNCHANGED <<etcdVars, tok, lost, seen, nodeVars, cacheVars, bndVars, histVars>>

\* the guards failed: nothing was committed
Failed(n) ==
  /\ up[n] /\ pst[n] = "fail"
  /\ tok' = Back(n) /\ Forget(n)
  /\ UNCHANGED <<etcdVars, lost, seen, touched, nodeVars, cacheVars, jr, bndVars, histVars>>

\* no reply, and the session it was sent under has ended: it can not commit any more
Abandon(n) ==
  /\ up[n] /\ pst[n] = "sent" /\ pend[n] \in net /\ sess[n] # pend[n].s
  /\ tok' = Back(n) /\ Forget(n)
  /\ UNCHANGED <<etcdVars, lost, seen, touched, nodeVars, cacheVars, jr, bndVars, histVars>>

\* No reply, the marker is read back and is not there, and the node goes on as if
\* nothing had been sent.  (With the marker guard the same batch is sent again
\* until one copy has committed or can not; the others then can not either.)
ReadBackAbsent(n) ==
  /\ ~MarkerGuard /\ nlate < MaxLate
  /\ up[n] /\ pst[n] = "sent" /\ pend[n] \in net
  /\ nlate' = nlate + 1
  /\ tok' = Back(n) /\ Forget(n)
  /\ UNCHANGED <<etcdVars, lost, seen, touched, nodeVars, cacheVars, jr, nsess, nfence, ncrash, histVars>>

---------------------------------------------------------------------------
(* failures *)
Fence(n) == /\ nfence < MaxFence /\ nfence' = nfence + 1
            /\ gen' = [gen EXCEPT ![n] = @ + 1]
            /\ UNCHANGED <<sess, lock, owner, clean, pub, net, tokVars, nodeVars, cacheVars, pipeVars, nsess, ncrash, nlate, histVars>>

Stop(n) ==
  /\ up[n]
  /\ IF gen[n] # myGen[n] THEN UNCHANGED ncrash ELSE ncrash < MaxCrash /\ ncrash' = ncrash + 1
  /\ up' = [up EXCEPT ![n] = FALSE] /\ trust' = [trust EXCEPT ![n] = FALSE]
  /\ mine' = [mine EXCEPT ![n] = 0]
  /\ tok' = [tok EXCEPT ![n] = [d \in Dom |-> "none"]]
  /\ lost' = [lost EXCEPT ![n] = [d \in Dom |-> "none"]]
  /\ cache' = [cache EXCEPT ![n] = [d \in Dom |-> NV]] /\ kc' = [kc EXCEPT ![n] = [d \in Dom |-> NV]]
  /\ seen' = [seen EXCEPT ![n] = [d \in Dom |-> <<NoNode, 0>>]]
  /\ touched' = [touched EXCEPT ![n] = [d \in Dom |-> TRUE]]
  /\ jr' = [jr EXCEPT ![n] = <<>>] /\ Forget(n)
  /\ dropc' = [v \in 1..MaxWrites |-> IF InJr(n, v) /\ dropc[v] = 0 THEN wc + 1 ELSE dropc[v]]
  /\ UNCHANGED <<etcdVars, myGen, nsess, nfence, nlate, wc, wr, pubd, dead, bad, stale>>

Start(n) ==
  /\ ~up[n] /\ (RestartWaits => sess[n] = 0)
  /\ up' = [up EXCEPT ![n] = TRUE] /\ trust' = [trust EXCEPT ![n] = TRUE]
  /\ myGen' = [myGen EXCEPT ![n] = gen[n]]
  /\ IF sess[n] = 0
       THEN /\ nsess < MaxSess /\ nsess' = nsess + 1
            /\ sess' = [sess EXCEPT ![n] = nsess + 1] /\ mine' = [mine EXCEPT ![n] = nsess + 1]
       ELSE /\ mine' = [mine EXCEPT ![n] = sess[n]] /\ UNCHANGED <<nsess, sess>>
  /\ UNCHANGED <<gen, lock, owner, clean, pub, net, tokVars, cacheVars, pipeVars, nfence, ncrash, nlate, histVars>>

Next ==
  \/ \E n \in Node : \/ Lapse(n) \/ Expire(n) \/ NewSession(n)
                     \/ DropJournal(n) \/ Publish(n) \/ Done(n) \/ Failed(n) \/ Abandon(n)
                     \/ ReadBackAbsent(n) \/ KernelLapse(n) \/ Fence(n) \/ Stop(n) \/ Start(n)
  \/ \E n \in Node, d \in Dom : \/ Retake(n, d) \/ DropShared(n, d) \/ AcqS(n, d) \/ AcqX(n, d)
                     \/ Learn(n, d) \/ Read(n, d) \/ KernelRead(n, d)
                     \/ Write(n, d) \/ Give(n, d)
  \/ \E m \in net : Apply(m)

Spec == Init /\ [][Next]_vars

---------------------------------------------------------------------------
(* invariants; the numbers are those of docs/VERIFICATION.md *)
Exclusive ==        \* 1, in etcd
  \A d \in Dom, n, m \in Node : n # m /\ lock[d][n] = "X" => lock[d][m] = "none"
BelievedExclusive == \* 1, in what trusting nodes believe
  \A d \in Dom, n, m \in Node :
    n # m /\ Live(n) /\ Live(m) /\ tok[n][d] = "X" => tok[m][d] = "none"
GuardedCommits ==   \* 2
  ~stale
PublishedGrows ==   \* 2 and 3: nothing overwrites a newer published value
  \A v \in pubd : v <= pub[wr[v][2]]
\* u was dropped, or lost with its process, before v was written
Gone(u, v) == dropc[u] # 0 /\ v > dropc[u] - 1
Prefix ==           \* 3: what is published of a node is a prefix of what it did
  \A v \in pubd : \A u \in 1..(v-1) :
    wr[u][1] = wr[v][1] /\ u \notin pubd => Gone(u, v)
Survives ==         \* 3 and 6: no read contradicts what was published
  \A d \in Dom : pubd \cap dead[d] = {}
FreshReads ==       \* 6: no read returns what an earlier read excluded
  ~bad
Symm == Permutations(Node) \cup Permutations(Dom)
=============================================================================
