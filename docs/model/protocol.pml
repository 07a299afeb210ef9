/*
 * Claim, lease, fence, wait and wake: the transactions of decision 18, as a model that Spin searches to its last state.
 * README.md beside this file tells of the processes, the promises, the flags that break the model, and how to run it.
 *
 * A transaction is written down as PostgreSQL runs it at READ COMMITTED:
 * - a lock is waited for, and kept until the commit;
 * - a read that decides something is a step of its own; others may commit before the step that acts on it,
 *   unless a lock keeps them from it;
 * - nobody sees what a transaction writes before it commits: all its writes are one step, the last.
 */

#ifndef FAULTS
#define FAULTS 2                /* so many crashes, and leases that run out while their worker lives, may happen */
#endif

#define WORKERS 3
#define NOBODY 3                /* the owner of a run that is not leased */
#define EVENT 0                 /* the wait for an event, whose fact may be there before the wait is */
#define PERSON 1                /* the wait for a person's answer, which has a deadline */

mtype:state = { absent, queued, ready, running, waiting, done, cancelled };
mtype:wait = { none, open, answered, expired, closed };

/* --- the tables --------------------------------------------------------------------------------------------------- */

typedef Run {
    mtype:state status = absent;
    byte epoch;
    byte owner = NOBODY;
    bool input;                 /* there until the first checkpoint has applied it */
    bool row                    /* whether its row is locked */
}

Run runs[2];                    /* of one thread: run 0 asks for an event and a person, run 1 comes after it */
mtype:wait waits[2] = none;     /* of run 0 */
bool settled_now[2];            /* settled_in = epoch: the wait was settled since run 0 was claimed, and is running */
bool journal;                   /* the step with the tx effect, in run 0, is done */
bool fact;                      /* the event is among the deliveries */
bool lease[WORKERS] = true;     /* the worker's heartbeat is young enough */
bool correlation_row;           /* whether the row of the event's key in correlation_locks is locked */
bool thread_row;                /* whether the thread's row is locked */

/* --- what really happened: no transaction reads it ---------------------------------------------------------------- */

byte applied[2];                /* how often a run's input was put into the state */
byte effects;                   /* how often the tx effect came about */
byte winners[2];                /* how many claimed a wait: the event, a person, the deadline */
byte writer[2] = NOBODY;        /* the worker whose writes were accepted in a run's present epoch */
byte faults;                    /* how many happened */
bool resting[WORKERS] = true;   /* has no run, and nothing in its memory */
byte holding[WORKERS];          /* the epoch of its claim, as it remembers it */
#define mine holding[me]

/* --- the promises ------------------------------------------------------------------------------------------------- */

#define over(r) (runs[r].status == done || runs[r].status == cancelled)
#define live(r) (runs[r].status == ready || runs[r].status == running || runs[r].status == waiting)
#define leased(r) (runs[r].owner != NOBODY)
#define settled(w) (waits[w] == answered || waits[w] == expired)

ltl no_lost_wake { [] ((fact && waits[EVENT] != none) -> <> over(0)) }
ltl every_run_ends { <> (over(0) && over(1)) }

inline keep_promises() {        /* the last thing that every commit does */
    assert((runs[0].status == running) == leased(0));
    assert((runs[1].status == running) == leased(1));
    assert(!live(0) || !live(1));
    assert(applied[0] <= 1 && applied[1] <= 1);
    assert(effects <= 1);
    assert(winners[EVENT] <= 1 && winners[PERSON] <= 1)
}

inline accept_write(r) {        /* by a worker's commit, once it is past the fence */
    assert(mine == runs[r].epoch);
    assert(writer[r] == NOBODY || writer[r] == me);
    writer[r] = me
}

/* --- locks, and the fence: every write of a worker names its run and its epoch ------------------------------------ */

inline lock(row) { atomic { !row -> row = true } }

#ifdef NO_CORRELATION_LOCK
inline lock_correlation() { skip }
#else
inline lock_correlation() { lock(correlation_row) }
#endif

#ifdef NO_THREAD_LOCK
inline lock_thread() { skip }
#else
inline lock_thread() { lock(thread_row) }
#endif

#ifdef NO_EPOCH
#define holds(r) (runs[r].status == running)
#else
#define holds(r) (runs[r].status == running && runs[r].epoch == mine)
#endif

/* An epoch is a number that no worker holds: the fence asks for no more. Numbers that only grow make more states. */
#define is_held(epoch) (epoch == holding[0] || epoch == holding[1] || epoch == holding[2])

inline next_epoch(r) {
    runs[r].epoch = 1;
    do
    :: is_held(runs[r].epoch) -> runs[r].epoch++
    :: else -> break
    od;
    settled_now[EVENT] = false;
    settled_now[PERSON] = false;
    writer[r] = NOBODY
}

inline release(r, status_now) {
    runs[r].status = status_now;
#ifndef OWNER_NOT_CLEARED
    runs[r].owner = NOBODY
#endif
}

/* A choice beside every transaction of a worker: it dies before that. A crash inside of one comes to the same. */
#define or_crash :: atomic { faults < FAULTS -> faults++; lease[me] = false; mine = 0; goto dead }

/* --- start -------------------------------------------------------------------------------------------------------- */

proctype Caller() {             /* starts run 1 while run 0 may still be live */
    bool busy;

#ifndef START_IGNORES_LIVE
    atomic { lock_thread(); busy = live(0) }
#endif
    atomic {
        runs[1].status = (busy -> queued : ready);
        runs[1].input = true;
        busy = false;
        keep_promises();
        thread_row = false
    }
}

inline make_next_ready() {      /* in the commit that ends or cancels run 0 */
    if :: runs[1].status == queued -> runs[1].status = ready :: else fi
}

/* --- claim, and load ---------------------------------------------------------------------------------------------- */

/* Workers at rest are all alike, so only the first of them claims: every other story is this one with other names. */
#define first_at_rest(me) ((me == 0 || !resting[0]) && (me != 2 || !resting[1]))
#define claimable(r) (runs[r].status == ready && !runs[r].row)

inline pick() {
    if
    :: first_at_rest(me) && claimable(0) -> r = 0
    :: first_at_rest(me) && claimable(1) -> r = 1
    fi;
    resting[me] = false
}

inline lease_to_me() {
    runs[r].status = running;
    runs[r].owner = me;
    keep_promises()
}

inline load() {
    input = runs[r].input;
#ifdef INPUT_TAKEN_BY_CLAIM
    runs[r].input = false;
#endif
    did = journal || r == 1;
    registered = waits[EVENT] != none;
    seen_event = settled(EVENT) || r == 1;
    seen_person = settled(PERSON) || r == 1
}

#ifdef NO_CLAIM_CAS
inline claim() {
    atomic { pick(); mine = runs[r].epoch + 1 }
    atomic {
        !runs[r].row;
        if :: runs[r].epoch != mine -> writer[r] = NOBODY :: else fi;
        runs[r].epoch = mine;
        lease_to_me()
    }
    atomic { load() }
}
#else
#ifdef LOAD_BEFORE_CLAIM
inline claim() {
    atomic { pick(); mine = runs[r].epoch; load() }
    atomic {
        !runs[r].row;
        if
        :: runs[r].status == ready && runs[r].epoch == mine -> next_epoch(r); mine = runs[r].epoch; lease_to_me()
        :: else -> goto rest
        fi
    }
}
#else
inline claim() {
    atomic {
        pick();
        next_epoch(r);
        mine = runs[r].epoch;
        lease_to_me()
    }
    atomic { load() }
}
#endif
#endif

/* --- first checkpoint, effect, end: what they read is locked by the fence, so each is one step -------------------- */

inline pass_fence() {
    !runs[r].row;
    if
    :: holds(r) -> accept_write(r)
    :: else -> goto rest
    fi
}

inline first_checkpoint() {
    pass_fence();
    input = false;
    applied[r]++;
#ifndef INPUT_NOT_CONSUMED
    runs[r].input = false;
#endif
    keep_promises()
}

inline tx_effect() {            /* step(..., effect="tx"): the effect, and its line in the journal */
    pass_fence();
    did = true;
    effects++;
#ifndef JOURNAL_AFTER_EFFECT
    journal = true;
#endif
    keep_promises()
}

inline end_run() {
    lock_thread();
    !runs[r].row;
    if
    :: holds(r) ->
        accept_write(r);
        assert(applied[r] == 1 && (r == 1 || effects == 1));
        release(r, done);
        make_next_ready();
        keep_promises()
    :: else
    fi;
    thread_row = false
}

/* --- pause: lock, fence and look, then commit --------------------------------------------------------------------- */

inline fence() {
    !runs[r].row;
    if
#ifdef FENCE_WITHOUT_LOCK
    :: holds(r)
#else
    :: holds(r) -> runs[r].row = true
#endif
    :: else ->
        correlation_row = false;
        thread_row = false;
        goto rest
    fi
}

inline look_back() {            /* is the fact there already; has an answer come since the run was claimed? */
#ifdef NO_LOOK_BACK
    found = false;
#else
    found = !registered && fact;
#endif
#ifdef WAKE_IGNORES_RUNNING
    news = found
#else
    news = found || settled_now[EVENT] || settled_now[PERSON]
#endif
}

inline register_waits() {
    if
    :: !registered ->
        waits[PERSON] = open;
        waits[EVENT] = open;
        if :: found -> waits[EVENT] = answered; winners[EVENT]++ :: else fi
    :: else                     /* an earlier pause has written them */
    fi
}

inline unlock() {
    runs[r].row = false;
    correlation_row = false;
    thread_row = false
}

inline commit_pause() {
    atomic {
        accept_write(r);
#ifndef REGISTER_AFTER_COMMIT
        register_waits();
#endif
        release(r, (news -> ready : waiting));
        keep_promises();
        unlock()
    }
#ifdef REGISTER_AFTER_COMMIT
    if
    or_crash
    :: lock_correlation()
    fi;
    atomic { lock_thread(); look_back() }
    atomic {
        !runs[r].row;
        register_waits();
        if :: news && runs[r].status == waiting -> runs[r].status = ready :: else fi;
        keep_promises();
        unlock()
    }
#endif
}

/* --- a worker ----------------------------------------------------------------------------------------------------- */

proctype Worker(byte me) {
    byte r;                     /* the run that it drives */
    bool input, did, registered, seen_event, seen_person;   /* the thread as it was when it was loaded */
    bool found, news;

end_idle:
    claim();

    if
    :: input ->
        if
        or_crash
        :: atomic { first_checkpoint() }
        fi
    :: else
    fi;

    /* The node begins at its top after every claim. */
    if
    :: !did ->
        if
        or_crash
        :: atomic { tx_effect() }
        fi;
#ifdef JOURNAL_AFTER_EFFECT
        if
        or_crash
        :: journal = true
        fi
#endif
    :: else
    fi;

    if
    :: seen_event && seen_person ->
        if
        or_crash
        :: atomic { end_run(); goto rest }
        fi
    :: else
    fi;

    /* Every pause takes the correlation lock, as if it always asked for something new as well. */
#ifdef LOCKS_OUT_OF_ORDER
    if
    or_crash
    :: lock_thread()
    fi;
    atomic { lock_correlation(); fence(); look_back() }
#else
    if
    or_crash
    :: lock_correlation()
    fi;
    atomic { lock_thread(); fence(); look_back() }
#endif
    commit_pause();

rest:
    atomic {
        r = 0; mine = 0; found = false; news = false;
        input = false; did = false; registered = false; seen_event = false; seen_person = false;
        lease[me] = true;       /* who lost its lease comes back as a new worker */
        resting[me] = true;
        goto end_idle
    }

dead:
    skip
}

/* --- leases that run out, and reap -------------------------------------------------------------------------------- */

inline run_out(r) {
    atomic { faults < FAULTS && leased(r) && lease[runs[r].owner] -> faults++; lease[runs[r].owner] = false }
}

proctype Stall() {              /* a worker is stopped, or cut off, for longer than its lease; it goes on, a zombie */
end_stall:
    do
    :: run_out(0)
    :: run_out(1)
    od
}

inline reap(r) {
    atomic {
        leased(r) && !lease[runs[r].owner] && !runs[r].row ->
        next_epoch(r);
        release(r, ready);
        keep_promises()
    }
}

proctype Reaper() {
end_watch:
    do
    :: reap(0)
    :: reap(1)
    od
}

/* --- delivery, wake, expiry, cancel ------------------------------------------------------------------------------- */

inline claim_wait(w, how) {     /* whoever finds the wait open wins it; a run that sleeps on it becomes ready */
    if
#ifdef NO_ANSWER_CAS
    :: true ->
#else
    :: waits[w] == open ->
#endif
        waits[w] = how;
        winners[w]++;
        if
        :: runs[0].status == waiting -> runs[0].status = ready
        :: runs[0].status == running -> settled_now[w] = true   /* its pause will look */
        :: else                 /* somebody has made it ready, or ended it */
        fi
#ifndef NO_ANSWER_CAS
    :: else                     /* somebody was faster */
#endif
    fi
}

proctype Source() {             /* stores the event, and then brings it to whoever waits for it */
    bool match;

    fact = true;
    /* If it dies here, a worker finds the delivery pending and goes on: later, and otherwise the same. */
#ifdef PENDING_NOT_SWEPT
    if
    :: true -> goto dead
    :: true
    fi;
#endif
    atomic { lock_correlation(); match = waits[EVENT] == open }
    atomic {
        if :: match -> lock_thread(); !runs[0].row; claim_wait(EVENT, answered); thread_row = false :: else fi;
        match = false;
        keep_promises();
        correlation_row = false
    }

#ifdef PENDING_NOT_SWEPT
dead:
    skip
#endif
}

proctype Claimant(mtype:wait how) {     /* one is the person, the other the deadline */
end_ask:
    atomic {
        waits[PERSON] != none;
        lock_thread();
        !runs[0].row;
        claim_wait(PERSON, how);
        keep_promises();
        thread_row = false
    }
}

inline close_wait(w) {
    if :: waits[w] == open -> waits[w] = closed :: else fi
}

inline cancel() {
    lock_thread();
    !runs[0].row;
    if
    :: live(0) ->
        release(0, cancelled);
        close_wait(EVENT);
        close_wait(PERSON);
        make_next_ready();
        keep_promises()
    :: else
    fi;
    thread_row = false
}

proctype Canceller() {          /* comes at any moment, or never */
    if
    :: atomic { cancel() }
    :: true
    fi
}

init {
    byte w;

    atomic {
        runs[0].status = ready;
        runs[0].input = true;
        for (w : 0 .. WORKERS - 1) { run Worker(w) }
        run Stall();
        run Reaper();
        run Source();
        run Claimant(answered);
        run Claimant(expired);
#ifdef CANCEL
        run Canceller();
#endif
#ifdef SECOND_RUN
        run Caller()
#else
        runs[1].status = done
#endif
    }
}
