import { alternateKey, headerText } from '../access/sent-key.ts'
import type { ListedModel } from '../relay/model-lists.ts'
import type { Request } from '../server/request.ts'
import type { Area } from './envelopes.ts'

/** The forms that model lists come in; `docs/api.md: Models`. */
export type ModelShape = 'chat' | 'messages' | 'alternate'

/** When a model came to be: nobody knows, so that all have the same time. */
const CREATED = 1_626_777_600
const CREATED_AT = '2021-07-20T10:40:00Z'
/** The owner of a model of which nobody says a vendor. */
const NO_VENDOR = 'custom'

/** One model in each shape. */
export const MODEL_ENTRY: Record<ModelShape, (model: ListedModel) => object> = {
  chat: ({ id, vendor, endpointTypes }) => ({
    id,
    object: 'model',
    created: CREATED,
    owned_by: vendor ?? NO_VENDOR,
    supported_endpoint_types: endpointTypes,
  }),
  messages: ({ id }) => ({ type: 'model', id, display_name: id, created_at: CREATED_AT }),
  // Methods of that vendor's protocol, of which there are none here.
  alternate: ({ id }) => ({ name: `models/${id}`, displayName: id, supportedGenerationMethods: [] }),
}

/** A whole list in each shape. */
export const MODEL_LIST: Record<ModelShape, (models: readonly ListedModel[]) => object> = {
  chat: (models) => ({ success: true, object: 'list', data: models.map(MODEL_ENTRY.chat) }),
  messages: (models) => ({
    data: models.map(MODEL_ENTRY.messages),
    first_id: models.at(0)?.id ?? null,
    has_more: false,
    last_id: models.at(-1)?.id ?? null,
  }),
  alternate: (models) => ({ models: models.map(MODEL_ENTRY.alternate), nextPageToken: null }),
}

/**
 * The shape that a request for the list asks for: the messages protocol's callers send their key in `x-api-key`, and a
 * version, which their real clients name otherwise.
 */
export function listShape(request: Request): 'chat' | 'messages' {
  const version = headerText(request, 'vendor-version') ?? headerText(request, 'anthropic-version')
  return version !== undefined && headerText(request, 'x-api-key') !== undefined ? 'messages' : 'chat'
}

/** The shape that a request for one model asks for, where the alternate vendor's key is taken too. */
export function entryShape(request: Request): ModelShape {
  const shape = listShape(request)
  return shape === 'chat' && alternateKey(request) !== undefined ? 'alternate' : shape
}

/** The envelope of errors on paths that can have either shape. */
export function modelErrorArea(request: Request): Area {
  return listShape(request) === 'messages' ? 'messages' : 'relay'
}
