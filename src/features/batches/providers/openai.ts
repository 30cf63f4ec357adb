import { randomUUID } from 'node:crypto'
import { RESPONSE_LIMITS, scanObject } from '@sluice/wire/json/json-scan'
import { asRecord } from '@sluice/wire/json/record'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Channel } from '../../../domain/records/channel.ts'
import { type BatchConnection, idIn } from './connection.ts'
import {
  type BatchApiOfProvider,
  type BatchLook,
  type BatchToMake,
  enclosed,
  onOneLine,
  type ProviderResult,
} from './provider-batches.ts'

/** Maximum size of a result that is read. */
export const MAX_RESULT_BYTES = 64 * 1_048_576
/** Name of the metadata by which a batch is found again. */
const NAME = 'sluice_batch'
/** Seconds by which the clocks of the provider and of this machine may differ. */
export const CLOCK_SECONDS = 300
const PAGE = 100

/** The batch API of OpenAI: lines are uploaded as a file, and results are files. */
export const openai: BatchApiOfProvider = openaiLike({
  maxLines: 50_000,
  pathOf: (_, path) => `/v1${path}`,
  uploaded: (_, file) => Promise.resolve(idIn(file)),
})

/** What differs between OpenAI and Azure. */
interface Differences {
  readonly maxLines: number
  /** Path of the requests, in lines and in the batch. */
  readonly pathOf: (channel: Channel, path: string) => string
  /** Resolves to the id of an uploaded file once a batch can be made of it. */
  readonly uploaded: (at: BatchConnection, file: Record<string, unknown>) => Promise<string>
}

/** A batch API like that of OpenAI. */
export function openaiLike({ maxLines, pathOf, uploaded }: Differences): BatchApiOfProvider {
  return {
    maxLines,
    maxBytes: 200_000_000,
    written(channel, id, path, body) {
      const [name, url] = [id, pathOf(channel, path)].map((text) => JSON.stringify(text))
      return Buffer.from(`{"custom_id":${name},"method":"POST","url":${url},"body":${onOneLine(body)}}\n`)
    },
    async make(at, batch) {
      const sent = await at.send(uploadOf(batch))
      await batch.onUploaded(idIn(sent))
      const file = await uploaded(at, sent)
      await batch.confirm()
      const made = await at.post('/batches', {
        input_file_id: file,
        endpoint: pathOf(at.channel, batch.path),
        completion_window: '24h',
        metadata: { [NAME]: batch.name },
      })
      return idIn(made)
    },
    async find(at, { name, intentMs }) {
      const first = `/batches?limit=${PAGE}`
      const pages = at.pages(first, ({ data, has_more: hasMore }) => {
        const last = recordsIn(data).at(-1)
        const isOlder = Number(last?.['created_at']) < intentMs / 1_000 - CLOCK_SECONDS
        if (!last || isOlder || hasMore !== true) return undefined
        return `${first}&after=${encodeURIComponent(String(last['id']))}`
      })
      for await (const { data } of pages) {
        const found = recordsIn(data).find((one) => asRecord(one['metadata'])?.[NAME] === name)
        if (found) return idIn(found)
      }
      return undefined
    },
    look: async (at, id) => lookOf(id, await at.get(`/batches/${encodeURIComponent(id)}`)),
    async *results(at, file) {
      const path = `/files/${encodeURIComponent(file)}/content`
      for await (const line of at.lines(path, MAX_RESULT_BYTES)) yield line && resultOf(line)
    },
    async cancel(at, id) {
      await at.post(`/batches/${encodeURIComponent(id)}/cancel`)
    },
    removeFile: (at, file) => at.remove(`/files/${encodeURIComponent(file)}`),
  }
}

function uploadOf({ name, content }: BatchToMake) {
  const boundary = randomUUID()
  const part = `--${boundary}\r\ncontent-disposition: form-data; name=`
  const before = Buffer.from(
    `${part}"purpose"\r\n\r\nbatch\r\n${part}"file"; filename="${name}.jsonl"\r\ncontent-type: application/jsonl\r\n\r\n`,
  )
  const body = enclosed(before, content, Buffer.from(`\r\n--${boundary}--\r\n`))
  return { path: '/files', body, contentType: `multipart/form-data; boundary=${boundary}` }
}

const ENDS: ReadonlyMap<string, BatchLook['ended']> = new Map([
  ['completed', 'completed'],
  ['expired', 'expired'],
  ['cancelled', 'cancelled'],
  ['failed', 'failed'],
])

function lookOf(id: string, batch: Record<string, unknown>): BatchLook {
  const files = [batch['output_file_id'], batch['error_file_id']]
  const errors = recordsIn(asRecord(batch['errors'])?.['data'])
  return {
    id,
    ended: ENDS.get(String(batch['status'])),
    results: files.filter((file): file is string => typeof file === 'string' && file !== ''),
    ...(errors.length > 0 && { words: JSON.stringify({ error: errors[0] }) }),
  }
}

function resultOf(line: Buffer): ProviderResult | undefined {
  const scan = scanned(line)
  const id = scan?.value('custom_id')
  if (!scan || typeof id !== 'string') return undefined
  const response = scan.span('response')
  const isAnswer = response && scan.kindOf(response.node) === 'object'
  const body = isAnswer ? scan.memberOf(response.node, 'body') : undefined
  const stated = isAnswer ? scan.memberOf(response.node, 'status_code') : undefined
  const status = stated === undefined ? Number.NaN : Number(scan.parse(stated))
  if (body !== undefined && Number.isInteger(status) && scan.kindOf(body) === 'object')
    return { id, answer: { status, body: bytesIn(scan, body) } }
  const error = asRecord(scan.value('error'))
  if (!error) return undefined
  if (error['code'] === 'batch_expired') return { id, answer: 'expired' }
  if (error['code'] === 'batch_cancelled') return { id, answer: 'cancelled' }
  return { id, answer: { status: 500, body: Buffer.from(JSON.stringify({ error })) } }
}

/** Scans a result; undefined if it is not a JSON object. */
export function scanned(line: Buffer): ScannedObject | undefined {
  try {
    return scanObject(line, RESPONSE_LIMITS)
  } catch {
    return undefined
  }
}

/** The bytes of a value in a result, which are those of the answer. */
export function bytesIn(scan: ScannedObject, node: number): Buffer {
  return scan.bytes.subarray(scan.startOf(node), scan.endOf(node))
}

/** The objects in a list of an answer. */
export function recordsIn(list: unknown): Record<string, unknown>[] {
  return Array.isArray(list) ? list.map(asRecord).filter((one) => one !== undefined) : []
}
