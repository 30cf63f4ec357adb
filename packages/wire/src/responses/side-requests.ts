import { checkMembers, isPresent, refuse } from '../field-check.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import { promptText } from '../prompt-text.ts'
import type { PromptText } from '../prompt-tokens.ts'
import { refersToItems } from './item-references.ts'
import { RESPONSES_PROMPT } from './prompt-levels.ts'
import { CHECKS, readResponsesRequest, REQUIRED, type ResponsesRequest } from './native/request.ts'

/** Fields that refer to items stored elsewhere. */
const REFERENCES = ['previous_response_id', 'conversation', 'prompt'] as const

/**
 * Returns the model for which tokens are counted. Throws `invalid_request` for the same faults as a responses
 * request.
 */
export function countedModel(scan: ScannedObject): string {
  checkMembers(scan, REQUIRED, CHECKS)
  return scan.value('model') as string
}

/**
 * Returns the text of a checked request to count. Throws `invalid_request` if its input refers to something
 * that is not part of it. `isComposed`: the references were already replaced by what they refer to.
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

/**
 * Checks a request to compact a conversation like a responses request that is neither streamed nor stored.
 */
export function readCompactionRequest(scan: ScannedObject): ResponsesRequest {
  const { providerTools: _, ...request } = readResponsesRequest(scan)
  if (request.stream) refuse('stream', 'false: a compaction is not streamed', 'true')
  // `store: false` here keeps the gateway from adding a `store` field, which compaction requests do not have.
  return { ...request, background: false, store: false }
}
