import { tmpdir } from 'node:os'
import { Request, Response } from '@sluice/http1'
import { expect, test } from 'vitest'
import { requestMemory } from '../../test/samples/request-memory.ts'
import { BodyReader } from './body-reader.ts'
import { Spool } from './spool.ts'

test('what goes on after its call has ended takes no more memory for the request', async () => {
  const memory = requestMemory()
  const spool = new Spool(
    tmpdir(),
    () => 0,
    () => 0,
  )
  const headers = { 'content-type': 'application/json' }
  const head = { method: 'POST', url: '/', version: '1.1', headers, hosts: 1, keepAlive: true }
  const request = new Request(head, { bytesRead: 0, remoteAddress: '', updateReading() {} })
  const response = new Response(
    {
      isOpen: true,
      send: () => true,
      sendParts: () => true,
      responseEnded() {},
      needsUpstream() {},
      destroy() {},
    },
    head,
  )
  const reading = new BodyReader(memory, spool).read(
    { request, response },
    { owner: { client: 1, key: 1 }, limit: 9 },
  )
  request.onChunks([Buffer.from('{}')])
  request.onBodyEnd('complete')
  const body = await reading
  body.hold(1_000)
  expect(memory.held).toBe(1_002)
  body.release()
  expect(() => body.hold(1_000)).toThrow('too many requests are being read')
  expect(memory.held).toBe(0)
})
