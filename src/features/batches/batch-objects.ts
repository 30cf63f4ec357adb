import { type Batch, type BatchEnd, LINE_ENDPOINTS, WINDOW_MS } from './batch.ts'
import { seconds } from './exchange.ts'

function timeOrNull(ms: number | undefined): number | null {
  return ms === undefined ? null : seconds(ms)
}

/** The status of a batch in the words of OpenAI's API. */
export function statusOf({
  createdMs,
  facts: { ending, endedMs },
  cancelMs,
}: Batch): BatchEnd | 'cancelling' | 'finalizing' | 'in_progress' {
  if (ending && endedMs !== undefined) return ending.how
  if (cancelMs !== undefined) return 'cancelling'
  return ending || Date.now() >= createdMs + WINDOW_MS ? 'finalizing' : 'in_progress'
}

/** A batch as clients of OpenAI's API see it. */
export function batchObject(batch: Batch): object {
  const { id, createdMs, facts, cancelMs } = batch
  const { ending, endedMs, counts, usage, total } = facts
  const ended = (how: string): number | null =>
    timeOrNull(ending?.how === how && endedMs !== undefined ? endedMs : undefined)
  const finalizing = ending?.how === 'completed' || ending?.how === 'expired' ? ending.atMs : undefined
  const hasFiles = endedMs !== undefined
  const hasUsage = LINE_ENDPOINTS[facts.path] !== 'moderations' && usage.input + usage.output > 0
  return {
    id,
    object: 'batch',
    endpoint: facts.path,
    ...(facts.model !== null && { model: facts.model }),
    errors: null,
    input_file_id: facts.inputFile,
    completion_window: '24h',
    status: statusOf(batch),
    output_file_id: hasFiles ? facts.outputFile : null,
    error_file_id: hasFiles ? facts.errorFile : null,
    created_at: seconds(createdMs),
    in_progress_at: seconds(createdMs),
    expires_at: seconds(createdMs + WINDOW_MS),
    finalizing_at: timeOrNull(finalizing),
    completed_at: ended('completed'),
    failed_at: null,
    expired_at: ended('expired'),
    cancelling_at: timeOrNull(cancelMs ?? (ending?.how === 'cancelled' ? ending.atMs : undefined)),
    cancelled_at: ended('cancelled'),
    request_counts: { total, completed: counts.completed, failed: counts.failed },
    ...(hasUsage && {
      usage: {
        input_tokens: usage.input,
        input_tokens_details: { cached_tokens: usage.cached },
        output_tokens: usage.output,
        output_tokens_details: { reasoning_tokens: usage.reasoning },
        total_tokens: usage.input + usage.output,
      },
    }),
    metadata: facts.metadata,
  }
}

/** When the results of a message batch expire, in Unix milliseconds; undefined before they exist. */
export function resultsExpireMs({ facts: { endedMs, keepMs } }: Batch): number | undefined {
  return endedMs === undefined ? undefined : endedMs + keepMs
}

/** A message batch as clients of Anthropic's API see it. `resultsUrl`: where its results are, if there are any. */
export function messageBatchObject(batch: Batch, resultsUrl: string, nowMs: number): object {
  const { id, createdMs, facts, cancelMs } = batch
  const { endedMs, counts, total } = facts
  const hasEnded = endedMs !== undefined
  const expireMs = resultsExpireMs(batch)
  const isArchived = expireMs !== undefined && nowMs >= expireMs
  const none = { processing: total, succeeded: 0, errored: 0, canceled: 0, expired: 0 }
  const all = {
    processing: 0,
    succeeded: counts.completed,
    errored: counts.failed,
    canceled: counts.cancelled,
    expired: counts.expired,
  }
  const cancelled = cancelMs ?? (facts.ending?.how === 'cancelled' ? facts.ending.atMs : undefined)
  return {
    id,
    type: 'message_batch',
    processing_status: hasEnded ? 'ended' : cancelled === undefined ? 'in_progress' : 'canceling',
    request_counts: hasEnded ? all : none,
    ended_at: timeText(endedMs),
    created_at: timeText(createdMs),
    expires_at: timeText(createdMs + WINDOW_MS),
    archived_at: isArchived ? timeText(expireMs) : null,
    cancel_initiated_at: timeText(cancelled),
    results_url: hasEnded && !isArchived ? resultsUrl : null,
  }
}

function timeText(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString()
}
