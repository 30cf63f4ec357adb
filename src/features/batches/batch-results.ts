import type { BatchStore, StoredResult, Unanswered } from './batch-store.ts'
import type { Batch, BatchEnd, LineHead, LineOutcome } from './batch.ts'

/** A line of a batch with its result; undefined if it has none. */
interface LineWithResult {
  readonly line: LineHead
  readonly result: StoredResult | undefined
}

/** How a line with this result has ended. */
export function outcomeOf(result: Pick<StoredResult, 'status' | 'without'>): LineOutcome {
  const { without } = result
  if (without === 'expired' || without === 'cancelled') return without
  return isAnswered(result) ? 'completed' : 'failed'
}

/** Whether a line was answered. */
export function isAnswered({ status }: Pick<StoredResult, 'status'>): boolean {
  return status >= 200 && status < 300
}

/** All lines of a batch with their results, in the order of the input. */
export async function* linesWithResults(
  store: BatchStore,
  batch: Batch,
): AsyncGenerator<LineWithResult, void, undefined> {
  const results = store.results(batch)
  let next = await results.next()
  for await (const line of store.inputHeads(batch)) {
    const isOfLine = !next.done && next.value.number === line.number
    yield { line, result: isOfLine ? (next.value as StoredResult) : undefined }
    if (isOfLine) next = await results.next()
  }
}

/** The lines of the file with results, or of the one with errors, of a batch that has ended like this. */
export async function* resultLines(
  store: BatchStore,
  batch: Batch,
  which: 'results' | 'errors',
  end: BatchEnd,
): AsyncGenerator<Buffer, void, undefined> {
  for await (const { line, result } of linesWithResults(store, batch)) {
    if ((which === 'results') !== (result !== undefined && isAnswered(result))) continue
    const id = `batch_req_${batch.id.slice(batch.id.indexOf('_') + 1)}${String(line.number).padStart(6, '0')}`
    const head = `{"id":${JSON.stringify(id)},"custom_id":${JSON.stringify(line.customId)},"response":`
    if (!result || result.without) {
      const why = result?.without ?? (end === 'completed' ? 'result_missing' : end)
      yield Buffer.from(`${head}null,"error":${JSON.stringify(UNANSWERED_ERRORS[why])}}\n`)
      continue
    }
    const { status, requestId } = result
    yield Buffer.from(`${head}{"status_code":${status},"request_id":${JSON.stringify(requestId)},"body":`)
    yield await store.bodyOf(result)
    yield Buffer.from(`},"error":null${droppedMember(result)}}\n`)
  }
}

/** The errors of lines without an answer. */
export const UNANSWERED_ERRORS: Readonly<
  Record<Unanswered, { readonly code: string; readonly message: string }>
> = {
  expired: { code: 'batch_expired', message: 'the request was not made before the batch expired' },
  cancelled: { code: 'batch_cancelled', message: 'the batch was cancelled before the request was made' },
  result_missing: { code: 'result_missing', message: 'the provider gave no result for the request' },
  content_lost: { code: 'content_lost', message: 'what the gateway kept of the request is lost' },
}

/** The lines of the results of a message batch that has ended like this. */
export async function* messageResultLines(
  store: BatchStore,
  batch: Batch,
  end: BatchEnd,
): AsyncGenerator<Buffer, void, undefined> {
  for await (const { line, result } of linesWithResults(store, batch)) {
    const head = `{"custom_id":${JSON.stringify(line.customId)},"result":`
    const why = result?.without ?? (result ? undefined : end === 'completed' ? 'result_missing' : end)
    if (why === 'result_missing' || why === 'content_lost') {
      const error = { type: 'api_error', message: UNANSWERED_ERRORS[why].message }
      yield Buffer.from(`${head}{"type":"errored","error":${JSON.stringify({ type: 'error', error })}}}\n`)
      continue
    }
    if (!result || why !== undefined) {
      yield Buffer.from(`${head}{"type":"${why === 'expired' ? 'expired' : 'canceled'}"}}\n`)
      continue
    }
    yield Buffer.from(
      isAnswered(result) ? `${head}{"type":"succeeded","message":` : `${head}{"type":"errored","error":`,
    )
    yield await store.bodyOf(result)
    yield Buffer.from(`}${droppedMember(result)}}\n`)
  }
}

function droppedMember({ dropped }: StoredResult): string {
  return dropped.length === 0 ? '' : `,"x_gateway_dropped":${JSON.stringify(dropped)}`
}
