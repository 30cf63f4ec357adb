import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import type { ClientProtocol } from '@sluice/wire/protocols'
import { describe, expect, test } from 'vitest'
import { ALL_PROTOCOLS, requestAs } from './convert-through.ts'
import { convertedPrompt } from './converted-prompt.ts'

/** The folder with recorded requests, if there is one. */
const FOLDER = process.env['RECORDINGS']

const HISTORY = { chat: 'messages', messages: 'messages', responses: 'input', gemini: 'contents' } as const
const UPSTREAMS = [...ALL_PROTOCOLS, 'converse'] as const
const MODELS = ['gpt-5.6', 'claude-opus-5', 'deepseek-v4', 'gemini-2.5-pro', 'acme-1']
const DIRECTIVES = new Set(['cache_control', 'prompt_cache_breakpoint'])

interface Message {
  readonly role?: string
  readonly type?: string
}

/** A recorded request of several turns. */
interface Recorded {
  readonly name: string
  readonly from: ClientProtocol
  readonly body: Readonly<Record<string, unknown>>
  readonly history: readonly Message[]
}

if (FOLDER === undefined) compareNothing()
else compareTurns(join(FOLDER, 'requests'))

function compareNothing(): void {
  test('recorded sessions are not converted where the environment variable RECORDINGS names no folder', () => {
    expect(FOLDER).toBeUndefined()
  })
}

function compareTurns(folder: string): void {
  const recorded = readdirSync(folder)
    .map((name) => recordedIn(folder, name))
    .filter((one) => one !== undefined)

  test('the folder of recordings has conversations of several turns', () => {
    expect(recorded.length).toBeGreaterThan(15)
  })

  describe.each(recorded)('the recorded conversation $name', ({ from, body, history }) => {
    test.each(UPSTREAMS.filter((to) => to !== from))(
      'each converted request of a recorded session to %s begins with the bytes of the previous request',
      (to) => {
        let compared = 0
        for (const model of MODELS) {
          const prompts = turnsOf(history).map((turns) => {
            // Azure names the model in the address.
            const request = JSON.stringify({ model, ...body, [HISTORY[from]]: turns })
            return convertedPrompt(to, requestAs(from, to, Buffer.from(request), model))
          })
          for (const [number, prompt] of prompts.slice(1).entries()) {
            const before = prompts[number]
            // Some conversations cannot be converted.
            if (!before || !prompt) continue
            compared++
            expect(prompt.front).toEqual(before.front)
            expect(prompt.history.slice(0, before.history.length)).toBe(before.history)
          }
        }
        expect(compared).toBeGreaterThan(0)
      },
    )
  })
}

/** The histories of the requests that led to this one: each ends before an answer, and none with one. */
function turnsOf(history: readonly Message[]): (readonly Message[])[] {
  const isSaid = ({ role, type }: Message): boolean =>
    role === 'assistant' || role === 'model' || type === 'function_call' || type === 'reasoning'
  const ends = history.flatMap((message, index) => {
    const before = history[index - 1]
    return index > 0 && isSaid(message) && before && !isSaid(before) ? [index] : []
  })
  const last = history.at(-1)
  return [...ends, ...(last && isSaid(last) ? [] : [history.length])].map((end) => history.slice(0, end))
}

/** A recorded request, without cache directives: where the earlier requests had theirs is not recorded. */
function recordedIn(folder: string, name: string): Recorded | undefined {
  const from = ALL_PROTOCOLS.find((protocol) => name.startsWith(`${protocol}--`))
  if (!from) return undefined
  const body = JSON.parse(readFileSync(join(folder, name), 'utf8'), (key, value: unknown) =>
    DIRECTIVES.has(key) ? undefined : value,
  ) as Record<string, unknown>
  const history = body[HISTORY[from]]
  return Array.isArray(history) && turnsOf(history as Message[]).length > 1
    ? { name, from, body, history: history as Message[] }
    : undefined
}
