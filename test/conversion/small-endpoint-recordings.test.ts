import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { describe, expect, test } from 'vitest'
import { ChatTap, readCompletionRequest, usageOfReply } from '@sluice/wire/chat'
import { EmbeddingsReply, readEmbeddingsRequest } from '@sluice/wire/embeddings'
import { scanObject } from '@sluice/wire/json/json-scan'
import { readModerationsReply, readModerationsRequest } from '@sluice/wire/moderations'

/** The folder with recorded responses of providers, if there is one. */
const FOLDER = process.env['RECORDINGS']

if (FOLDER === undefined) replayNothing()
else replay(join(FOLDER, 'embeddings'))

/** A recorded response in a form: its facts, and the bytes for the client. */
function read(bytes: Buffer, form: 'numbers' | 'base64'): { facts: EmbeddingsReply['facts']; body: Buffer } {
  const reply = new EmbeddingsReply(form)
  const body = Buffer.concat([reply.push(bytes), reply.end()])
  return { facts: reply.facts, body }
}

function replayNothing(): void {
  test('recorded calls of small endpoints are not replayed where the environment variable RECORDINGS names no folder', () => {
    expect(FOLDER).toBeUndefined()
  })
}

function replay(folder: string): void {
  const named = (start: string, ending: RegExp): string[] =>
    readdirSync(folder).filter((name) => name.startsWith(start) && ending.test(name))
  const bytesOf = (name: string): Buffer => readFileSync(join(folder, name))

  describe('recorded requests', () => {
    const readers = {
      embeddings: readEmbeddingsRequest,
      completions: readCompletionRequest,
      moderations: readModerationsRequest,
    }
    const all = Object.entries(readers).flatMap(([kind, read]) =>
      named(`${kind}--`, /\.request\.json$/).map((name) => [name, read] as const),
    )
    test.each(all)('the recorded embeddings or media request is accepted: %s', (name, read) => {
      expect(read(scanObject(bytesOf(name))).promptBound).toBeGreaterThan(0)
    })
  })

  describe('a recorded response', () => {
    const answers = named('embeddings--', /(?<!\.request)\.json$/)
    const isAnswer = (name: string): boolean => bytesOf(name).includes('"embedding":')
    test.each(answers.filter((name) => !isAnswer(name)))(
      'the recorded response %s, which is not an embeddings response, is read as invalid',
      (name) => {
        expect(read(bytesOf(name), 'numbers').facts.valid).toBe(false)
      },
    )

    test.each(answers.filter(isAnswer))(
      'the recorded response %s is read with its embedding vectors and usage',
      (name) => {
        const bytes = bytesOf(name)
        const { usage } = JSON.parse(bytes.toString()) as { usage: { total_tokens: number } }
        const isBase64 = /"embedding": ?"/.test(bytes.toString())
        const asCame = read(bytes, isBase64 ? 'base64' : 'numbers')
        expect(asCame.facts).toMatchObject({ valid: true, usage: { input: usage.total_tokens, output: 0 } })
        expect(asCame.body).toEqual(bytes)
        const other = read(bytes, isBase64 ? 'numbers' : 'base64').body
        const back = read(other, isBase64 ? 'base64' : 'numbers').body
        const singles = (text: Buffer): unknown =>
          JSON.parse(text.toString(), (_, value: unknown) =>
            typeof value === 'number' ? Math.fround(value) : value,
          )
        expect(singles(back)).toEqual(singles(bytes))
      },
    )

    test.each(named('moderations--', /(?<!\.request)\.json$/))(
      'the recorded response %s is read as a valid moderation without usage',
      (name) => {
        expect(readModerationsReply(bytesOf(name))).toMatchObject({ valid: true, usage: undefined })
      },
    )

    test.each(named('completions--', /(?<!\.request)\.json$/))(
      'the recorded response %s is read with its text and usage',
      (name) => {
        const facts = usageOfReply(bytesOf(name))
        expect(facts.valid).toBe(true)
        expect(facts.text()).not.toBe('')
        expect(facts.usage?.output).toBeGreaterThan(0)
      },
    )

    test.each(named('completions--openai', /\.sse$/))(
      'the recorded response %s is read as a complete stream of text',
      (name) => {
        const tap = new ChatTap({ swallowUsage: false })
        tap.push(bytesOf(name))
        expect(tap.end().complete).toBe(true)
        expect(tap.text).not.toBe('')
      },
    )

    test.each(named('error-400--embeddings', /(?<!\.request)\.json$/))(
      'the recorded response %s is read as an error',
      (name) => {
        expect(read(bytesOf(name), 'numbers').facts).toMatchObject({ valid: false })
      },
    )
  })
}
