import { type FullResponse, type Body, type CallOptions, call } from './client.ts'
import { channel } from './configuration.ts'
import type { RankedResult } from './rerank-behaviour.ts'
import type { Fixture } from './fixture.ts'

/** The parts of a rerank response that tests read. */
export interface RerankBody {
  readonly results: readonly RankedResult[]
  readonly usage: {
    readonly prompt_tokens: number
    readonly completion_tokens: number
    readonly total_tokens: number
  }
}

/** A channel of the rerank dialect with one key. */
export function rerankChannel(
  name: string,
  baseUrl: string,
  fields: Record<string, unknown> = {},
): Record<string, unknown> {
  return channel(name, baseUrl, { protocol: 'rerank', ...fields })
}

/** A minimal rerank request with three documents. */
export function askRerank(model: string, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return { model, query: 'which?', documents: ['zero', 'one', { text: 'two' }], ...fields }
}

/** Makes a rerank call. */
export function rerank(
  fixture: Fixture,
  key: string,
  body: Body,
  options: CallOptions = {},
): Promise<FullResponse> {
  return call(fixture.gateway.url, body, { key, path: '/v1/rerank', ...options })
}

/** The body of a successful response. */
export function ranked(answer: FullResponse): RerankBody {
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text.slice(0, 500)}`)
  return JSON.parse(answer.text) as RerankBody
}
