import { Response } from '@sluice/http1'
import { expect, test } from 'vitest'
import { requestMemory } from '../../../test/samples/request-memory.ts'
import { DISCARDING_CONNECTION, NO_TRAITS } from '../../call/answers/answer-recorder.ts'
import { RunningAnswer } from '../../call/answers/running-answer.ts'
import type { IncomingCall } from '../../call/incoming-call.ts'
import {
  CallUnderWay,
  type EqualCall,
  EqualCalls,
  type EqualCallsPolicy,
  type MissedAnswer,
} from './equal-calls.ts'

type UnderWay = CallUnderWay<EqualCall, object, object>

const OWNER = { client: 1, key: 1 }
const newCall = (): EqualCall => ({
  lookup: 'same',
  owner: OWNER,
  maxMisses: 3,
  incoming: { response: new Response(DISCARDING_CONNECTION, NO_TRAITS) } as unknown as IncomingCall,
})

/** Equal calls that end with their last client, and what happens when one is made or may attach. */
function equalCalls(
  make: (recorded: IncomingCall) => Promise<void>,
  beforeAttaching: () => Promise<void> = () => Promise.resolve(),
): EqualCalls<EqualCall, object, object, UnderWay> {
  const memory = requestMemory()
  const policy: EqualCallsPolicy<EqualCall, object, object, UnderWay> = {
    begin: (call) =>
      new CallUnderWay(
        call,
        new RunningAnswer({ memory, owner: OWNER, maxBytes: 1_000, staysWithoutClients: () => false }),
      ),
    claim: () => Promise.resolve('make'),
    beforeWaiting: () => {},
    async attach({ answer }, { incoming }): Promise<MissedAnswer | undefined> {
      await beforeAttaching()
      return (await answer.attach(incoming.response)) ? undefined : {}
    },
    replay: () => Promise.resolve(false),
    make: (_, recorded) => make(recorded),
    factsOf: () => ({}),
    keep: () => Promise.resolve(),
    release: () => Promise.resolve(),
    over: () => {},
  }
  return new EqualCalls(policy)
}

test('no call waits for the end of another whose clients have all left, also one that came before they left', async () => {
  const [drained, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let made = 0
  const calls = equalCalls(
    async ({ response }) => {
      made += 1
      if (made === 1) await drained.promise
      else response.writeHead(200, {}).end('answer')
    },
    () => left.promise,
  )
  const [first, second, third] = [newCall(), newCall(), newCall()]
  const abandoned = calls.answer(first)
  const before = calls.answer(second)
  // Both have begun: the first is made, and the second is about to attach.
  await new Promise((resolve) => setImmediate(resolve))
  first.incoming.response.onConnectionEnd('aborted')
  left.resolve()
  await Promise.all([before, calls.answer(third)])
  expect(second.incoming.response.headersSent).toBe(true)
  expect(third.incoming.response.headersSent).toBe(true)
  expect(made).toBeLessThanOrEqual(3)
  drained.resolve()
  await abandoned
})
