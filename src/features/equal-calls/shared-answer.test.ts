import { Response } from '@sluice/http1'
import { expect, test } from 'vitest'
import { requestMemory } from '../../../test/samples/request-memory.ts'
import { DISCARDING_CONNECTION, NO_TRAITS } from '../../call/answers/answer-recorder.ts'
import { type CachedCall, SharedAnswer } from './shared-answer.ts'

test('who left before an equal call is waited for keeps that call from nothing', async () => {
  const call = { owner: { client: 1, key: 1 } } as CachedCall
  const shared = new SharedAnswer(call, requestMemory(), { bodyFor: () => Promise.resolve(undefined) })
  const response = new Response(DISCARDING_CONNECTION, NO_TRAITS)
  response.onConnectionEnd('aborted')
  const isThere = shared.waitFor(response)
  expect(shared.answer.clients).toBe(0)
  expect(await isThere).toBe(false)
})
