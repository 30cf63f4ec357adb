import { checkMembers, isPresent, refuse } from '../field-check.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import { promptText } from '../prompt-text.ts'
import type { PromptText } from '../prompt-tokens.ts'
import { refersToItems } from './item-references.ts'
import { RESPONSES_PROMPT } from './prompt-levels.ts'
import { CHECKS, readResponsesRequest, REQUIRED, type ResponsesRequest } from './request.ts'

/** Fields that stand for items which are kept elsewhere. */
const REFERENCES = ['previous_response_id', 'conversation', 'prompt'] as const

/** Returns the model that tokens are counted for; throws `invalid_request` as for a response. */
export function countedModel(scan: ScannedObject): string {
  checkMembers(scan, REQUIRED, CHECKS)
  return scan.value('model') as string
}

/**
 * Returns the text to count of a checked request; throws `invalid_request` where its input is not all there.
 * `isComposed`: all that a conversion would send is in it.
 */
export function countableText(scan: ScannedObject, isComposed: boolean): PromptText {
  for (const field of REFERENCES)
    if (isPresent(scan, field) && !(isComposed && field === 'previous_response_id')) refuseReference(field)
  if (!isComposed && refersToItems(scan)) refuseReference('input')
  return promptText(scan, RESPONSES_PROMPT, '')
}

function refuseReference(field: string): never {
  refuse(field, `all items in 'input' where no channel of the model counts tokens`, 'a reference')
}

/** Checks a request to compact a conversation, as one for a response that is neither streamed nor stored. */
export function readCompactionRequest(scan: ScannedObject): ResponsesRequest {
  const { providerTools: _, ...request } = readResponsesRequest(scan)
  if (request.stream) refuse('stream', 'false: a compaction is not streamed', 'true')
  // Without `store` no field is added to the request, which has none.
  return { ...request, background: false, store: false }
}
