import { decodeThinking } from './chat/thinking.ts'
import { outputMaximumIn } from './chat/native/request.ts'
import type { DroppedFields } from './codec.ts'
import type { Conversation } from './conversation.ts'
import { isPresent, refuseField } from './field-check.ts'
import { nullToUndefined } from './field.ts'
import { asRecord } from './json/record.ts'
import type { ScannedObject } from './json/scanned-object.ts'
import { decodeRequest } from './responses/decode/request.ts'
import { readResponsesRequest, type ResponsesRequest } from './responses/native/request.ts'

/** Whether a body at the chat endpoint has the form of a responses request, as Cursor sends it for some models. */
export function isResponsesForm(scan: ScannedObject): boolean {
  return isPresent(scan, 'input') && !isPresent(scan, 'messages')
}

/** A checked responses request that is answered in chat. */
export interface ResponsesForm extends ResponsesRequest {
  /** Whether the client requested the stream's chunk with usage. */
  readonly includeUsage: boolean
}

/** Checks a responses request that is answered in chat. Throws `invalid_request` if it refers to stored responses. */
export function readResponsesForm(scan: ScannedObject): ResponsesForm {
  const request = readResponsesRequest(scan)
  if (request.background) refuseField('background', 'false at this endpoint', 'true')
  for (const field of ['conversation', 'previous_response_id'])
    if (isPresent(scan, field)) refuseField(field, `all items in 'input' at this endpoint`, 'a reference')
  return {
    ...request,
    maxTokens: request.maxTokens ?? outputMaximumIn(scan),
    includeUsage: asRecord(scan.value('stream_options'))?.['include_usage'] === true,
  }
}

/** Decodes a responses request that is answered in chat. It may state maxima and thinking as chat requests do. */
export function decodeResponsesForm(scan: ScannedObject, dropped: DroppedFields): Conversation {
  const conversation = decodeRequest(scan, dropped)
  const { includeUsage, maxTokens } = readResponsesForm(scan)
  const {
    thinking = decodeThinking(
      (name) => nullToUndefined(name === 'reasoning' ? undefined : scan.value(name)),
      dropped,
    ),
  } = conversation
  return { ...conversation, maxTokens, thinking, includeUsage, showsThoughts: true }
}
