import { type Attributes, type Context, type Logger, SeverityNumber } from '@opentelemetry/api'
import type { Resource } from '@opentelemetry/resources'
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs'
import type { ExportCounts } from '../export-counts.ts'
import type { QueueSettings, SignalSettings } from '../telemetry-settings.ts'
import { logExporter } from './exporters.ts'
import type { MessageAttributes } from './message-attributes.ts'
import { SpanQueueLimit } from './span-queue-limit.ts'

const EVENT = 'gen_ai.client.inference.operation.details'
const ID = 'sluice.request_id'
/** Attributes of the call's span that its event repeats. */
const REPEATED = /^(?:gen_ai\.|server\.|error\.type$|sluice\.request_id$)/

/**
 * Exports an event for each call whose content is exported. The event repeats attributes of the call's span,
 * and contains the messages in structured form. `docs/telemetry.md: What was said`.
 */
export class CallEvents {
  readonly #provider: LoggerProvider
  readonly #logger: Logger
  readonly #room: SpanQueueLimit
  /** Length of the content in each queued event, in characters, by the id of its call. */
  readonly #lengths: Map<string, number>

  private constructor(provider: LoggerProvider, room: SpanQueueLimit, lengths: Map<string, number>) {
    this.#provider = provider
    this.#logger = provider.getLogger('sluice')
    this.#room = room
    this.#lengths = lengths
  }

  static async open(
    options: SignalSettings,
    { maxQueueSize, maxBatchSize, batchDelayMs }: QueueSettings,
    resource: Resource,
    counts: ExportCounts,
  ): Promise<CallEvents> {
    const room = new SpanQueueLimit(maxQueueSize, (events) => counts.dropped('LOGS', events))
    const lengths = new Map<string, number>()
    const exporter = await logExporter(options, counts, (records) => {
      room.leave(records.length)
      for (const { attributes } of records) {
        const id = String(attributes[ID])
        room.giveContent(lengths.get(id) ?? 0)
        lengths.delete(id)
      }
    })
    const processor = new BatchLogRecordProcessor({
      exporter,
      maxQueueSize,
      maxExportBatchSize: maxBatchSize,
      scheduledDelayMillis: batchDelayMs,
    })
    return new CallEvents(new LoggerProvider({ resource, processors: [processor] }), room, lengths)
  }

  /**
   * Adds the event of a call within the trace of the call. If the queue is full, the event is dropped and
   * counted.
   */
  add(attributes: Attributes, said: MessageAttributes, endedMs: number, context: Context): void {
    if (!this.#room.has(1)) return
    const all: Attributes = {}
    for (const [name, value] of Object.entries(attributes)) if (REPEATED.test(name)) all[name] = value
    let length = 0
    for (const [name, value] of Object.entries(said)) {
      const characters = JSON.stringify(value).length
      if (!this.#room.takeContent(characters)) continue
      length += characters
      all[name] = value as Attributes[string]
    }
    this.#room.enter(1)
    this.#lengths.set(String(attributes[ID]), length)
    this.#logger.emit({
      eventName: EVENT,
      severityNumber: SeverityNumber.DEBUG,
      timestamp: endedMs,
      attributes: all,
      context,
    })
  }

  shutdown(): Promise<void> {
    return this.#provider.shutdown()
  }
}
