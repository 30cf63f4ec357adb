import type { Caller } from '../accounts/authentication/caller.ts'
import { DenseSet, type DenseSetMember } from '../domain/dense-set.ts'
import type { RunningCall } from '../domain/running-call.ts'
import type { Call } from './call.ts'

/** The running calls of this node. */
export class RunningCalls {
  readonly #calls = new DenseSet<CallUnderWay>()

  /** Adds a call, and returns the entry by which it is removed. */
  add(call: Call, caller: Caller): CallUnderWay {
    const entry = { call, caller, index: -1 }
    this.#calls.add(entry)
    return entry
  }

  delete(entry: CallUnderWay): void {
    this.#calls.delete(entry)
  }

  /** The calls, the oldest first. */
  list(): readonly RunningCall[] {
    return [...this.#calls].map(shown).toSorted((a, b) => a.startedMs - b.startedMs)
  }

  /** Stops a call of this user, or of any user if undefined. Returns false if there is no such call. */
  stop(id: string, userId: number | undefined): boolean {
    for (const { call, caller } of this.#calls)
      if (call.incoming.id === id && (userId === undefined || caller.user.id === userId)) return call.stop()
    return false
  }
}

/** A running call with the API key that makes it. */
interface CallUnderWay extends DenseSetMember {
  readonly call: Call
  readonly caller: Caller
}

function shown({ call, caller: { user, token } }: CallUnderWay): RunningCall {
  const { incoming, hold, attempt } = call
  const { facts } = hold
  const { record } = incoming
  return {
    id: incoming.id,
    startedMs: facts.started_ms,
    user: { id: user.id, username: user.username },
    token: { id: token.id, name: token.name },
    model: call.plan.model.name,
    kind: facts.kind,
    stream: facts.stream,
    channel: record.channel ?? facts.channel,
    attempt: record.attempts ?? 0,
    state: attempt === undefined ? 'waiting' : call.hasFirstByte ? 'answering' : 'sent',
    ...(attempt?.progress ?? { tokens: 0, cost: 0 }),
    held: hold.amount,
  }
}
