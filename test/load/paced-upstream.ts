import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import process from 'node:process'

/** A separate program: an upstream of the chat dialect whose streams all have the same pace. */

const [paceMs = 100, events = 100] = process.argv.slice(2).map(Number)
const frame = (choices: unknown, more: object = {}): string =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`
const WORD = frame([{ index: 0, delta: { content: ' word' }, finish_reason: null }])
const END =
  frame([{ index: 0, delta: {}, finish_reason: 'stop' }]) +
  frame([], { usage: { prompt_tokens: 5, completion_tokens: events, total_tokens: 5 + events } }) +
  'data: [DONE]\n\n'

/**
 * Streams are divided into turns; those of one turn are written together. Turns are short, because their
 * length adds to the jitter.
 */
const TURN_MS = 2
const turnCount = Math.max(1, Math.round(paceMs / TURN_MS))
const turns = Array.from({ length: turnCount }, () => new Map<ServerResponse, number>())
let next = 0

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(frame([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]))
    const turn = turns[next++ % turnCount]
    turn?.set(response, events)
    response.on('close', () => turn?.delete(response))
  })
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))

let turn = 0
let dueMs = performance.now()
setInterval(() => {
  // Serves as many turns as are due: a late timer must not slow the pace.
  for (; dueMs <= performance.now(); dueMs += paceMs / turnCount) {
    const streams = turns[turn++ % turnCount]
    for (const [response, left] of streams ?? []) {
      if (left > 0) {
        response.write(WORD)
        streams?.set(response, left - 1)
      } else {
        streams?.delete(response)
        response.end(END)
      }
    }
  }
}, paceMs / turnCount)
process.on('disconnect', () => process.exit())
