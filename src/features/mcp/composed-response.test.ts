import { scanObject } from '@sluice/wire/json/json-scan'
import { expect, onTestFinished, test, vi } from 'vitest'
import { EventResponse } from '../../call/answers/event-response.ts'
import { ResponseMemory } from '../../limits/request-memory.ts'
import { requestMemory } from '../../../test/samples/request-memory.ts'
import { ComposedResponse } from './composed-response.ts'

test('a client that has events to read gets no keep-alives', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const types: unknown[] = []
  let reads = true
  const response = new EventResponse(new ResponseMemory(requestMemory(), { client: 1, key: 1 }), {
    event(json) {
      types.push((JSON.parse(json) as { type: string }).type)
      return reads
    },
    whole() {},
    ended: (sent) => sent(),
    broke() {},
  })
  const request = scanObject(Buffer.from('{"stream":true,"tools":[]}'))
  const composed = new ComposedResponse(response, request, false, {})
  composed.begin({}, '{"status":"queued"}')
  const since = (ms: number): unknown[] => {
    types.length = 0
    vi.advanceTimersByTime(ms)
    return types
  }
  expect(since(15_000)).toEqual(['response.in_progress'])
  reads = false
  composed.send('response.x', {})
  expect(since(60_000)).toEqual([])
  reads = true
  response.onDrain()
  expect(since(15_000)).toEqual(['response.in_progress'])
  composed.end({ status: 'completed' }, '{}')
  expect(vi.getTimerCount()).toBe(0)
})
