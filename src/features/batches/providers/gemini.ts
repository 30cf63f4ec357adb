import { TransportError } from '@sluice/http1'
import { asRecord } from '@sluice/wire/json/record'
import { type BatchConnection, ProviderRefused } from './connection.ts'
import { bytesIn, MAX_RESULT_BYTES, recordsIn, scanned } from './openai.ts'
import {
  type BatchApiOfProvider,
  type BatchLook,
  type BatchToMake,
  onOneLine,
  type ProviderResult,
} from './provider-batches.ts'

const CLOCK_MS = 300_000
const PAGE = 100
/** Names of batches and of files in paths. */
const BATCH = /^batches\/[\w.-]+$/
const FILE = /^files\/[\w.-]+$/

/** The batch API of Gemini: lines are uploaded as a file, so that results have our ids and not only a place. */
export const gemini: BatchApiOfProvider = {
  maxLines: 100_000,
  maxBytes: 2_000_000_000,
  written: (_, id, __, body) => Buffer.from(`{"key":${JSON.stringify(id)},"request":${onOneLine(body)}}\n`),
  async make(at, batch) {
    const fileName = await upload(at, batch)
    await batch.onUploaded(fileName)
    await batch.confirm()
    const path = batch.path.replace(/:[^:]+$/, ':batchGenerateContent')
    const made = await at.post(path, { batch: { displayName: batch.name, inputConfig: { fileName } } })
    return nameIn(made, BATCH)
  },
  async find(at, { name, intentMs }) {
    const first = `/batches?pageSize=${PAGE}`
    const pages = at.pages(first, ({ operations, nextPageToken: next }) =>
      typeof next === 'string' && next !== '' && recordsIn(operations).length > 0
        ? `${first}&pageToken=${encodeURIComponent(next)}`
        : undefined,
    )
    for await (const { operations } of pages)
      for (const operation of recordsIn(operations)) {
        const metadata = asRecord(operation['metadata'])
        if (metadata?.['displayName'] === name) return nameIn(operation, BATCH)
        if (Date.parse(String(metadata?.['createTime'])) < intentMs - CLOCK_MS) return undefined
      }
    return undefined
  },
  async look(at, id) {
    const operation = await at.get(`/${id}`)
    const metadata = asRecord(operation['metadata'])
    const ended = ENDS.get(String(metadata?.['state']).replace(/^[A-Z]+_STATE_/, ''))
    const output = asRecord(operation['response']) ?? asRecord(metadata?.['output'])
    const file = output?.['responsesFile']
    const error = operation['error']
    return {
      id,
      ended,
      results: typeof file === 'string' && FILE.test(file) ? [file] : [],
      ...(asRecord(error) && { words: JSON.stringify({ error }) }),
    }
  },
  async *results(at, file) {
    const below = at.below((path) => `/download${path}`)
    for await (const line of below.lines(`/${file}:download?alt=media`, MAX_RESULT_BYTES))
      yield line && resultOf(line)
  },
  async cancel(at, id) {
    await at.post(`/${id}:cancel`)
  },
  removeFile: (at, file) => at.remove(`/${file}`),
}

const ENDS: ReadonlyMap<string, BatchLook['ended']> = new Map([
  ['SUCCEEDED', 'completed'],
  ['FAILED', 'failed'],
  ['CANCELLED', 'cancelled'],
  ['EXPIRED', 'expired'],
])

/** Uploads the lines; resolves to the name of the file. */
async function upload(at: BatchConnection, { name, content }: BatchToMake): Promise<string> {
  const begun = await at
    .below((path) => `/upload${path}`)
    .head('/files', { file: { displayName: name } }, [
      'x-goog-upload-protocol',
      'resumable',
      'x-goog-upload-command',
      'start',
      'x-goog-upload-header-content-length',
      String(content.length),
      'x-goog-upload-header-content-type',
      'application/jsonl',
    ])
  const url = URL.parse(begun['x-goog-upload-url'] ?? '')
  if (!url) throw new TransportError('the answer to an upload names no address', false)
  // Only the path counts: lines go to the address of the channel alone.
  const sent = await at
    .below(() => '/')
    .send({
      path: `${url.pathname}${url.search}`,
      body: content,
      contentType: 'application/jsonl',
      headers: ['x-goog-upload-command', 'upload, finalize', 'x-goog-upload-offset', '0'],
    })
  return nameIn(asRecord(sent['file']) ?? {}, FILE)
}

function nameIn({ name }: Record<string, unknown>, pattern: RegExp): string {
  if (typeof name === 'string' && pattern.test(name)) return name
  throw new ProviderRefused(502, Buffer.from('{}'), undefined)
}

/** Statuses of the codes of `google.rpc.Code`. */
const STATUSES: Readonly<Record<number, number>> = {
  3: 400,
  5: 404,
  7: 403,
  8: 429,
  9: 400,
  11: 400,
  12: 501,
  14: 503,
  16: 401,
}
const CANCELLED = 1
const DEADLINE_EXCEEDED = 4

function resultOf(line: Buffer): ProviderResult | undefined {
  const scan = scanned(line)
  const id = scan?.value('key')
  if (!scan || typeof id !== 'string') return undefined
  const response = scan.span('response')
  if (response && scan.kindOf(response.node) === 'object')
    return { id, answer: { status: 200, body: bytesIn(scan, response.node) } }
  const error = asRecord(scan.value('error'))
  if (!error) return undefined
  const code = Number(error['code'])
  if (code === CANCELLED) return { id, answer: 'cancelled' }
  if (code === DEADLINE_EXCEEDED) return { id, answer: 'expired' }
  const status = code >= 400 && code <= 599 ? code : (STATUSES[code] ?? 500)
  return { id, answer: { status, body: Buffer.from(JSON.stringify({ error })) } }
}
