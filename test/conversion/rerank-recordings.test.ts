import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { describe, expect, test } from 'vitest'
import { NO_USAGE } from '@sluice/wire/usage'
import { scanObject } from '@sluice/wire/json/json-scan'
import { readRerankReply, readRerankRequest } from '@sluice/wire/rerank'

/** The folder with recorded responses of providers, if there is one. */
const FOLDER = process.env['RECORDINGS']

interface Result {
  readonly index: number
  readonly relevance_score: number
  readonly document?: string | { readonly text?: string }
}

interface Asked {
  readonly documents: readonly (string | { readonly text: string })[]
}

if (FOLDER === undefined) replayNothing()
else replay(join(FOLDER, 'rerank'))

function replayNothing(): void {
  test('recorded rerank calls are not replayed where the environment variable RECORDINGS names no folder', () => {
    expect(FOLDER).toBeUndefined()
  })
}

function replay(folder: string): void {
  const named = (ending: string): string[] => readdirSync(folder).filter((name) => name.endsWith(ending))

  describe('recorded rerank requests', () => {
    test.each(named('.request.json'))('the recorded rerank request %s is accepted', (name) => {
      const { documents } = requested(readFileSync(join(folder, name), 'utf8'))
      const scan = scanObject(Buffer.from(JSON.stringify({ model: 'm', query: 'q', documents })))
      expect(readRerankRequest(scan).documents).toHaveLength(documents.length)
    })
  })

  describe('recorded rerank responses', () => {
    test.each(named('.response.json'))(
      'the recorded rerank response %s reaches the client with the whole ranking, best first',
      (name) => {
        const bytes = readFileSync(join(folder, name))
        const recorded = JSON.parse(bytes.toString())
        const theirs: Result[] = recorded.results ?? recorded.data
        const request = join(folder, name.replace('.response.', '.request.'))
        const { documents } = existsSync(request)
          ? requested(readFileSync(request, 'utf8'))
          : { documents: numbered(theirs) }
        const scan = scanObject(
          Buffer.from(JSON.stringify({ model: 'm', query: 'q', documents, return_documents: true })),
        )
        const reply = readRerankReply(bytes, scan, readRerankRequest(scan), 'as sent')
        expect(reply.facts.valid).toBe(true)
        const told = recorded.usage?.total_tokens
        const units = recorded.meta?.billed_units?.search_units
        const reported = told !== undefined || units !== undefined
        expect(reply.facts.usage).toEqual(
          reported
            ? {
                ...NO_USAGE,
                input: told ?? 0,
                searchUnits: units ?? 0,
                ...(told === undefined && { promptIsUnknown: true }),
              }
            : undefined,
        )
        const { results, usage } = JSON.parse(reply.body({ ...NO_USAGE, input: 5 }).toString())
        expect(usage).toEqual({ prompt_tokens: 5, completion_tokens: 0, total_tokens: 5 })
        const best = theirs.toSorted((a, b) => b.relevance_score - a.relevance_score)
        expect(results.map(({ index, relevance_score }: Result) => [index, relevance_score])).toEqual(
          best.map(({ index, relevance_score }) => [index, relevance_score]),
        )
        for (const { index, document } of results as Result[])
          expect(textOf(document)).toBe(textOf(documents[index]))
      },
    )
  })
}

function requested(text: string): Asked {
  // Some providers have the model in their URL.
  const whole = text.includes('"model"') ? text : text.replace('{', '{"model":"m",')
  readRerankRequest(scanObject(Buffer.from(whole)))
  return JSON.parse(whole) as Asked
}

function numbered(results: readonly Result[]): string[] {
  const count = Math.max(...results.map(({ index }) => index)) + 1
  return Array.from({ length: count }, (_, index) => `document ${index}`)
}

function textOf(document: Result['document']): string | undefined {
  return typeof document === 'string' ? document : document?.text
}
