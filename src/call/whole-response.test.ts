import { Response } from '@sluice/http1'
import { expect, test } from 'vitest'
import { requestMemory } from '../../test/samples/request-memory.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'
import { DISCARDING_CONNECTION, NO_TRAITS } from './answers/answer-recorder.ts'
import type { Call } from './call.ts'
import { SENT_CALL_STOPPED } from './failure.ts'
import type { AttemptTarget } from './request-stages.ts'
import { UpstreamFlow } from './upstream-flow.ts'
import { WholeResponse } from './whole-response.ts'

test('a stopped answer gives its memory back, also if its charge cannot be written', async () => {
  const memory = requestMemory()
  const lost = new StoreUnavailable('the disk is full')
  const call = {
    services: { memory },
    hold: { account: { user: { id: 1 }, token: { id: 1 } } },
    response: new Response(DISCARDING_CONNECTION, NO_TRAITS),
    noteFirstByte() {},
    noteError() {},
    settlement: { settle: () => Promise.reject(lost) },
  } as unknown as Call
  const answer = new WholeResponse(call, {} as AttemptTarget, new UpstreamFlow())
  answer.onData(Buffer.alloc(1_000_000))
  expect(memory.held).toBeGreaterThan(0)
  answer.onFailure(SENT_CALL_STOPPED)
  await expect(answer.end).rejects.toBe(lost)
  expect(memory.held).toBe(0)
})
