import { Response } from '@sluice/http1'
import { expect, test } from 'vitest'
import type { Options } from '../domain/options.ts'
import { DISCARDING_CONNECTION, NO_TRAITS } from './answers/answer-recorder.ts'
import type { IncomingCall } from './incoming-call.ts'
import { waitLimitsOf } from './wait-limits.ts'

test('a call whose client left before it would wait for quota does not wait', () => {
  const response = new Response(DISCARDING_CONNECTION, NO_TRAITS)
  const wait = (): number =>
    waitLimitsOf({ response } as IncomingCall, { hold_wait: 2_000 } as Options).waitMs
  expect(wait()).toBe(2_000)
  response.onConnectionEnd('aborted')
  expect(wait()).toBe(0)
})
