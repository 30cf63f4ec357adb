import { reroutingField, reroutingMemberName } from '@sluice/wire/upstream-settings'
import type { Endpoint } from '../../domain/endpoints.ts'
import type { Channel } from '../../domain/records/channel.ts'
import { editRequest } from '@sluice/wire/edit-request'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Shape } from '@sluice/wire/shape/define-shape'
import { mediaFieldNames } from '@sluice/wire/media'
import type { FormBody } from '../../call/body-reader.ts'
import { EditedForm } from '../../call/form-body.ts'
import type {
  AttemptRequest,
  ChannelPlan,
  MeasuredRequest,
  ParsedRequest,
} from '../../call/request-stages.ts'
import type { Dialect, FormDialect } from '../../call/dialects/dialect.ts'
import { throwNoStreams } from '../../call/dialects/answer-reader.ts'
import type { PassthroughResponses } from '../../call/dialects/passthrough.ts'

/** The request's bytes, which can be edited for a channel. */
export interface EditableBody {
  /** Content type of the body that is sent; JSON if absent. */
  readonly contentType?: string
  /**
   * Returns the body with this model name. If `isOpen` is false, fields that may lead to another model or
   * price are removed.
   */
  forChannel(name: string, channel: Channel, isOpen: boolean): Pick<AttemptRequest, 'body' | 'dropped'>
}

/** Returns a JSON body that can be edited for a channel. */
export function editableJsonBody(scan: ScannedObject): EditableBody {
  return {
    forChannel(name, channel, isOpen) {
      const replace = scan.value('model') === name ? [] : [['model', JSON.stringify(name)] as const]
      return editRequest(scan, channel, isOpen, { remove: [], replace: new Map(replace) })
    },
  }
}

/** Returns a form body that can be edited for a channel. */
export function editableFormBody({ parts, bytes, contentType, edits = [] }: FormBody): EditableBody {
  return {
    contentType,
    forChannel(name, { allow }, isOpen) {
      const changed = parts.filter((part) => part.name === 'model' && part.text !== name)
      const written = parts.flatMap((part) =>
        part.isChanged && part.text !== undefined ? [{ part, text: part.text }] : [],
      )
      const emptied = parts.filter((part) => {
        const field = isOpen ? undefined : reroutingField(part.name)
        return field !== undefined && !allow.has(field)
      })
      const replacements = [
        ...changed.map((part) => ({ part, text: name })),
        ...emptied.map((part) => ({ part, text: '' })),
        ...written.filter(({ part }) => !emptied.includes(part)),
        ...edits.filter(({ part }) => !emptied.some(({ start }) => start === part.start)),
      ]
      const dropped = new Set(emptied.map((part) => reroutingMemberName(part.name) as string))
      return { body: new EditedForm(bytes, replacements), dropped: [...dropped] }
    },
  }
}

/** A checked request to an image or audio endpoint. */
interface MediaRequest {
  readonly model: string
  /** Path relative to a channel's base URL. */
  readonly path: string
  readonly body: EditableBody
  readonly stream: boolean
  /** Text of the prompt, for counting tokens. */
  readonly prompt: string
  /** Maximum tokens of the request's files. */
  readonly fileTokens: number
  /** Maximum output tokens for which quota is reserved. */
  readonly outputTokens: number
  readonly measured: MeasuredRequest
  readonly passed: PassthroughResponses
}

/** Converts a media request to the form that the relay needs. */
export function parsedRequestOf(request: MediaRequest): ParsedRequest {
  const { model, stream, prompt, measured } = request
  return {
    model,
    stream,
    maxTokens: undefined,
    promptBound: Buffer.byteLength(prompt) + request.fileTokens,
    measured,
    forModel: (name) => parsedRequestOf({ ...request, model: name }),
    forChannels: (channels) => channels.map((channel) => requestFor(request, channel)),
  }
}

function requestFor(request: MediaRequest, channel: Channel): ChannelPlan {
  const upstreamModel = channel.model_mapping.get(request.model) ?? request.model
  const { contentType } = request.body
  return {
    channel,
    outputMaximum: request.outputTokens,
    choices: 1,
    prepare: (passThrough) => ({
      protocol: 'chat',
      path: request.path,
      headers: [],
      ...request.body.forChannel(upstreamModel, channel, passThrough || channel.pass_through),
      ...(contentType !== undefined && { contentType }),
      passed: request.passed,
      prompt: () => request.prompt,
      upstreamModel,
      tap: throwNoStreams,
      reply: throwNoStreams,
    }),
  }
}

const SERVED = {
  name: 'chat',
  names: mediaFieldNames,
  // Image and audio endpoints exist only on servers of the chat protocol, so nothing is converted.
  servedBy: ['chat'],
} as const

/** Creates an image or audio endpoint with JSON requests. */
export function createJsonMediaDialect(
  endpoint: Endpoint,
  shape: Shape,
  read: (scan: ScannedObject) => ParsedRequest,
): Dialect {
  return { ...SERVED, endpoint, shape, read: (scan) => read(scan) }
}

/** Creates an image or audio endpoint with forms. */
export function createFormMediaDialect(endpoint: Endpoint, read: FormDialect['read']): FormDialect {
  return { ...SERVED, endpoint, read }
}
