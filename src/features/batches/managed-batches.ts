import { asRecord, parseRecord } from '@sluice/wire/json/record'
import { GatewayError } from '../../errors.ts'
import type { BatchSource, FailedLine, ManagedBatch } from '../../management/batches/batches.ts'
import { type Batch, WINDOW_MS } from './batch.ts'
import { statusOf } from './batch-objects.ts'
import { UNANSWERED_ERRORS, isAnswered, linesWithResults } from './batch-results.ts'
import type { BatchStore } from './batch-store.ts'
import type { FileStore } from './file-store.ts'
import { linesOf } from './piece-reader.ts'

/** Maximum size of a line whose error is shown; larger ones have no error that people read. */
const MAX_LINE_BYTES = 4 * 1_048_576
/** Maximum length of a message that is shown. */
const MAX_MESSAGE = 1_000

/** Services for the management of batches. */
export interface ManagedBatchServices {
  readonly batches: BatchStore
  readonly files: FileStore
  /** Stops the work on a batch at once, if this node does it; others learn of the wish from the store. */
  readonly onCancelled?: (id: string) => void
}

/** The batches of all users as account management sees them. */
export class ManagedBatches implements BatchSource {
  readonly #services: ManagedBatchServices

  constructor(services: ManagedBatchServices) {
    this.#services = services
  }

  ownerOf(id: string): Promise<number | undefined> {
    return this.#services.batches.ownerOf(id)
  }

  async find(userId: number, id: string): Promise<ManagedBatch | undefined> {
    const batch = await this.#services.batches.find(userId, id)
    return batch && managedBatch(batch)
  }

  async cancel(userId: number, id: string): Promise<boolean> {
    const { batches, onCancelled } = this.#services
    const batch = await batches.find(userId, id)
    if (!batch || batch.facts.ending) return false
    if (batch.cancelMs === undefined) await batches.cancel(batch, Date.now())
    onCancelled?.(id)
    return true
  }

  async failedLines(userId: number, id: string, maximum: number): Promise<readonly FailedLine[]> {
    const batch = await this.#services.batches.find(userId, id)
    if (!batch) return []
    const failed: FailedLine[] = []
    const lines = batch.facts.endedMs === undefined ? this.#failedSoFar(batch) : this.#failedAtEnd(batch)
    try {
      for await (const line of lines) {
        failed.push({ ...line, message: line.message.slice(0, MAX_MESSAGE) })
        if (failed.length === maximum) break
      }
    } catch (error) {
      // What is known of a batch is shown although its errors are lost.
      if (!isNotFound(error)) throw error
    }
    return failed
  }

  async *lines(
    userId: number,
    id: string,
    which: 'results' | 'errors',
  ): AsyncGenerator<string, void, undefined> {
    const batch = await this.#services.batches.find(userId, id)
    const pieces = batch && (await this.#contentOf(batch, which))
    if (!batch || !pieces)
      throw new GatewayError('not_found', 'the results of this batch are not kept any more')
    if (batch.facts.path !== '/v1/messages') {
      const decoder = new TextDecoder()
      for await (const piece of pieces) yield decoder.decode(piece, { stream: true })
      return
    }
    // The results of a message batch are in one content.
    for await (const { bytes } of linesOf(pieces, Number.MAX_SAFE_INTEGER)) {
      const { result } = parseRecord(bytes?.toString() ?? '') ?? {}
      const isGood = asRecord(result)?.['type'] === 'succeeded'
      if (isGood === (which === 'results')) yield `${bytes?.toString()}\n`
    }
  }

  /** The content with the results or errors of a batch that has ended; undefined if it is not kept. */
  async #contentOf(batch: Batch, which: 'results' | 'errors'): Promise<AsyncIterable<Buffer> | undefined> {
    const { batches, files } = this.#services
    if (batch.facts.path === '/v1/messages') return (await batches.resultsOf(batch))?.pieces
    const id = which === 'results' ? batch.facts.outputFile : batch.facts.errorFile
    if (id === null) return undefined
    try {
      return files.content(await files.find(batch.userId, id))
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }

  async *#failedSoFar(batch: Batch): AsyncGenerator<FailedLine, void, undefined> {
    const { batches } = this.#services
    for await (const { line, result } of linesWithResults(batches, batch)) {
      if (!result || isAnswered(result)) continue
      const { error } = result.without
        ? { error: UNANSWERED_ERRORS[result.without] }
        : (parseRecord((await batches.bodyOf(result)).toString()) ?? {})
      yield failedLine(line.customId, result.without ? null : result.status, error)
    }
  }

  async *#failedAtEnd(batch: Batch): AsyncGenerator<FailedLine, void, undefined> {
    const pieces = await this.#contentOf(batch, 'errors')
    if (!pieces) return
    for await (const { bytes } of linesOf(pieces, MAX_LINE_BYTES)) {
      const line = bytes && parseRecord(bytes.toString())
      if (!line) continue
      const customId = String(line['custom_id'])
      const result = asRecord(line['result'])
      const response = asRecord(line['response'])
      if (result?.['type'] === 'succeeded') continue
      if (result) {
        const error = asRecord(result['error'])?.['error']
        yield failedLine(customId, null, error ?? { code: `batch_${String(result['type'])}` })
      } else if (response)
        yield failedLine(customId, Number(response['status_code']), asRecord(response['body'])?.['error'])
      else yield failedLine(customId, null, line['error'])
    }
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof GatewayError && error.code === 'not_found'
}

function managedBatch(batch: Batch): ManagedBatch {
  const { id, userId, tokenId, createdMs, facts } = batch
  const { path, model, total, counts, held = 0, endedMs } = facts
  const hasEnded = endedMs !== undefined
  return {
    id,
    userId,
    tokenId,
    endpoint: path,
    model,
    status: statusOf(batch),
    total,
    counts,
    held: hasEnded ? 0 : held,
    createdMs,
    expiresMs: createdMs + WINDOW_MS,
    endedMs,
    hasResults: hasEnded && counts.completed > 0,
    hasErrors: hasEnded && counts.completed < total,
  }
}

function failedLine(custom_id: string, status: number | null, given: unknown): FailedLine {
  const error = asRecord(given)
  const text = (name: string): string => (typeof error?.[name] === 'string' ? error[name] : '')
  return { custom_id, status, code: text('code') || text('type'), message: text('message') }
}
