import type { ReceivedMedia } from './received-media.ts'
import type { StreamDecoder } from './codec.ts'
import { inputOrEmpty } from './tool-input.ts'
import type { Reply, ReplyEvent, ReplyPart, Stop } from './reply.ts'
import type { ReportedUsage } from './reported-usage.ts'
import { NO_TOOL_USES, type ReportedToolUses } from './tool-use.ts'

/**
 * Turns the call of one tool into the text of the reply. The gateway forced this tool on a model that cannot
 * follow a schema for its text; the client must not see the tool.
 */
export function answerToolCallAsText(reply: Reply, tool: string): Reply {
  const parts = reply.parts.map(
    (part): ReplyPart =>
      part.kind === 'tool-call' && part.name === tool
        ? { kind: 'text', text: inputOrEmpty(part.input) }
        : part,
  )
  return { ...reply, parts, stop: stopWithoutTool(reply.stop) }
}

/**
 * Turns the call of the tool that the gateway forced into the text of the reply, while the reply is streamed.
 */
export class AnswerToolDecoder implements StreamDecoder {
  readonly #decoder: StreamDecoder
  readonly #tool: string
  /**
   * The parts that are calls of the tool, by their number; the value says whether any of the input has
   * arrived.
   */
  readonly #answers = new Map<number, boolean>()

  constructor(decoder: StreamDecoder, tool: string) {
    this.#decoder = decoder
    this.#tool = tool
  }

  get sawEvent(): boolean {
    return this.#decoder.sawEvent
  }

  get usage(): ReportedUsage | undefined {
    return this.#decoder.usage
  }

  get arrived(): ReceivedMedia {
    return this.#decoder.arrived
  }

  get tools(): ReportedToolUses {
    return this.#decoder.tools ?? NO_TOOL_USES
  }

  release(): void {
    this.#decoder.release()
  }

  push(chunk: Buffer): ReplyEvent[] {
    return this.#decoder.push(chunk).flatMap((event) => this.#read(event))
  }

  end(): ReplyEvent[] {
    return this.#decoder.end().flatMap((event) => this.#read(event))
  }

  #read(event: ReplyEvent): ReplyEvent | ReplyEvent[] {
    switch (event.kind) {
      case 'part-start':
        if (event.part.kind !== 'tool-call' || event.part.name !== this.#tool) return event
        this.#answers.set(event.index, false)
        return { kind: 'part-start', index: event.index, part: { kind: 'text' } }
      case 'tool-input':
        if (!this.#answers.has(event.index)) return event
        this.#answers.set(event.index, true)
        return { kind: 'text', index: event.index, text: event.text }
      case 'part-end': {
        const { index } = event
        if (this.#answers.get(index) !== false) return event
        return [{ kind: 'text', index, text: inputOrEmpty('') }, event]
      }
      case 'end':
        return { ...event, stop: stopWithoutTool(event.stop) }
      case 'start':
      case 'text':
      case 'thinking':
      case 'proof':
      case 'citation':
      case 'ping':
      case 'failure':
        return event
    }
  }
}

/** Replaces the stop reason for tool calls, because the client has no such tool to run. */
function stopWithoutTool(stop: Stop): Stop {
  return stop.reason === 'tool-calls' ? { reason: 'end' } : stop
}
