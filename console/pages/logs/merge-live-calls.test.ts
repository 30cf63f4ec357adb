import { expect, test } from 'vitest'
import type { Call, CallSums } from '../../api/calls.ts'
import { mergeLiveCalls, addLiveCallsToSums } from './merge-live-calls.ts'

function call(id: string, fields: Partial<Call> = {}): Call {
  return { id, quota: 10, prompt_tokens: 1, completion_tokens: 2, reason: 'complete', ...fields } as Call
}

const SUMS: CallSums = { quota: 100, requests: 5, prompt_tokens: 50, completion_tokens: 70 }

test('a call that is both in the live stream and in the loaded log is shown and counted once', () => {
  const live = [call('d'), call('c', { reason: 'failed', quota: 0 }), call('b')]
  const listed = [call('b'), call('a')]
  expect(mergeLiveCalls(live, listed, 500).map(({ id }) => id)).toEqual(['d', 'c', 'b', 'a'])
  expect(addLiveCallsToSums(SUMS, live, listed)).toEqual({
    quota: 110,
    requests: 6,
    prompt_tokens: 52,
    completion_tokens: 74,
  })
})

test('a loaded log that is longer than the maximum of live calls keeps its length when a live call is added', () => {
  expect(mergeLiveCalls([call('c')], [call('b'), call('a')], 1).map(({ id }) => id)).toEqual(['c', 'b'])
})
