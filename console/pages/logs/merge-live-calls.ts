import type { Call, CallSums } from '../../api/calls.ts'

/** The calls of the list and those that ended since it was loaded, newest first, without duplicates. */
export function mergeLiveCalls(live: readonly Call[], listed: readonly Call[], max: number): readonly Call[] {
  return [...unlistedCalls(live, listed), ...listed].slice(0, Math.max(max, listed.length))
}

/** The sums of calls, plus the calls that ended since the sums and the list were loaded. */
export function addLiveCallsToSums(sums: CallSums, live: readonly Call[], listed: readonly Call[]): CallSums {
  const fresh = unlistedCalls(live, listed)
  return {
    ...sums,
    quota: sums.quota + total(fresh, ({ quota }) => quota),
    requests: sums.requests + fresh.filter(({ reason }) => reason !== 'failed').length,
    prompt_tokens: sums.prompt_tokens + total(fresh, ({ prompt_tokens }) => prompt_tokens),
    completion_tokens: sums.completion_tokens + total(fresh, ({ completion_tokens }) => completion_tokens),
  }
}

/** The calls of the live stream that the list does not contain. */
export function unlistedCalls(live: readonly Call[], listed: readonly Call[]): readonly Call[] {
  const known = new Set(listed.map(({ id }) => id))
  return live.filter(({ id }) => !known.has(id))
}

function total(calls: readonly Call[], of: (call: Call) => number): number {
  return calls.reduce((sum, call) => sum + of(call), 0)
}
