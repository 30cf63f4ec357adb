import { tmpdir } from 'node:os'
import { Request, Response } from '@sluice/http1'
import { expect, test, vi } from 'vitest'
import { requestMemory, usedUp } from '../../test/samples/request-memory.ts'
import type { RequestMemory } from '../limits/request-memory.ts'
import { DISCARDING_CONNECTION } from './answers/answer-recorder.ts'
import { type Body, BodyReader } from './body-reader.ts'
import { Spool } from './spool.ts'

const MIB = 1024 * 1024

/** A body that has arrived, and the response to its client. */
async function arrived(memory: RequestMemory): Promise<{ readonly body: Body; readonly response: Response }> {
  const spool = new Spool(
    tmpdir(),
    () => 0,
    () => 0,
  )
  const headers = { 'content-type': 'application/json' }
  const head = { method: 'POST', url: '/', version: '1.1', headers, hosts: 1, keepAlive: true }
  const request = new Request(head, { bytesRead: 0, remoteAddress: '', updateReading() {} })
  const response = new Response(DISCARDING_CONNECTION, head)
  const owner = { client: 1, key: 1 }
  const reading = new BodyReader(memory, spool).read({ request, response }, { owner, limit: 9 })
  request.onChunks([Buffer.from('{}')])
  request.onBodyEnd('complete')
  return { body: await reading, response }
}

test('what goes on after its call has ended takes no more memory for the request', async () => {
  const memory = requestMemory()
  const { body } = await arrived(memory)
  body.hold(1_000)
  expect(memory.held).toBe(1_002)
  body.release()
  expect(() => body.hold(1_000)).toThrow('too many requests are being read')
  expect(memory.held).toBe(0)
})

test('the conversion of a request does not wait for memory if the client has left', async () => {
  const memory = requestMemory()
  const [other, left] = [await arrived(memory), await arrived(memory)]
  usedUp(memory)
  // Takes the turn of the one conversion that may exceed its share.
  await other.body.holdCopies(100 * MIB)
  left.response.onConnectionEnd('aborted')
  vi.useFakeTimers()
  let refusal: unknown
  left.body.holdCopies(100 * MIB)?.catch((error: unknown) => (refusal = error))
  await vi.advanceTimersByTimeAsync(1)
  vi.useRealTimers()
  expect(refusal).toMatchObject({ code: 'overloaded' })
})
