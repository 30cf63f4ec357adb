import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const FOLDER = new URL('..', import.meta.url)

function run(program: string, input = ''): string {
  return execFileSync(process.execPath, ['--input-type=module-typescript', '--eval', program], {
    cwd: fileURLToPath(FOLDER),
    input,
    encoding: 'utf8',
  })
}

test('the examples in the README of the wire package convert a request and a stream', () => {
  const text = readFileSync(new URL('README.md', FOLDER), 'utf8')
  const [convert = '', stream = '', ...others] = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(
    ([, lines = '']) => lines,
  )
  expect(others).toEqual([])
  expect(JSON.parse(run(convert))).toEqual({
    model: 'claude-sonnet-4-6',
    max_tokens: 9,
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
  })

  const events = [
    { type: 'message_start', message: { id: 'msg_1', model: 'claude', usage: { input_tokens: 3 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ]
  const frames = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
  const chunks = run(stream, frames)
    .trim()
    .split('\n\n')
    .map((line) => line.slice('data: '.length))
  expect(chunks.pop()).toBe('[DONE]')
  const parsed = chunks.map((chunk) => JSON.parse(chunk))
  expect(parsed.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('Hello')
  expect(parsed.at(-1).usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 1 })
})
