import type { Channel } from '../../../domain/channel.ts'
import type { ChannelRequest, RelayedRequest } from '../dialect.ts'
import { edit } from '../../../protocols/json/json-edit.ts'
import type { ScannedObject } from '../../../protocols/json/scanned-object.ts'
import type { OutgoingBody } from '../../../upstreams/outgoing-body.ts'
import type { FormBody } from '../../body-reader.ts'
import { EditedForm } from '../../form-body.ts'
import type { PassedResponses } from '../passage.ts'
import { unstreamed } from '../unstreamed.ts'

/** Bytes of a request in which the model's name can be replaced. */
export interface EditableBody {
  /** The type to state; JSON if absent. */
  readonly contentType?: string
  /** The bytes with this name in place of the client's. */
  withModel(name: string): Buffer | OutgoingBody
}

/** A JSON body. */
export function jsonBody(scan: ScannedObject): EditableBody {
  return {
    withModel(name) {
      const replace = scan.value('model') === name ? [] : [['model', JSON.stringify(name)] as const]
      return edit(scan.bytes, scan, { remove: [], replace: new Map(replace) })
    },
  }
}

/** A form. */
export function formBody({ parts, bytes, contentType }: FormBody): EditableBody {
  return {
    contentType,
    withModel(name) {
      const part = parts.find((one) => one.name === 'model')
      const isSame = part === undefined || part.text === name
      return new EditedForm(bytes, isSame ? [] : [{ part, text: name }])
    },
  }
}

/** A checked request about images or audio. */
interface MediaRequest {
  readonly model: string
  /** Below a channel's base URL. */
  readonly path: string
  readonly body: EditableBody
  readonly stream: boolean
  /** Text of the prompt, for counting. */
  readonly prompt: string
  /** Tokens that its files may count as. */
  readonly fileTokens: number
  /** The most output tokens that are held for. */
  readonly outputTokens: number
  readonly measuredBounds: NonNullable<RelayedRequest['measuredBounds']>
  readonly measuredPrompt?: NonNullable<RelayedRequest['measuredPrompt']>
  readonly passed: PassedResponses
}

/** The request as the relay sees it. */
export function relayedMedia(request: MediaRequest): RelayedRequest {
  const { model, stream, prompt, measuredBounds } = request
  return {
    model,
    stream,
    maxTokens: undefined,
    promptBound: Buffer.byteLength(prompt) + request.fileTokens,
    measuredBounds,
    ...(request.measuredPrompt && { measuredPrompt: request.measuredPrompt }),
    webSearch: false,
    body: Buffer.from(prompt),
    forModel: (name) => relayedMedia({ ...request, model: name }),
    forChannels: (channels) => channels.map((channel) => requestFor(request, channel)),
  }
}

function requestFor(request: MediaRequest, channel: Channel): ChannelRequest {
  const upstreamModel = channel.modelMapping.get(request.model) ?? request.model
  const { contentType } = request.body
  return {
    channel,
    outputMaximum: request.outputTokens,
    choices: 1,
    prepare: () => ({
      protocol: 'chat',
      path: request.path,
      headers: [],
      body: request.body.withModel(upstreamModel),
      ...(contentType !== undefined && { contentType }),
      passed: request.passed,
      upstreamModel,
      dropped: [],
      tap: unstreamed,
      reply: unstreamed,
    }),
  }
}
