import type { UpstreamSettings } from '../upstream-settings.ts'
import { isPresent } from '../field-check.ts'
import { editRequest, type EditedRequest } from '../edit-request.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import { textNode, written } from './document.ts'
import type { RerankRequest } from './request.ts'

/** Request for a channel. */
export interface GatedRerank extends EditedRequest {
  /** The model's name at the upstream. */
  readonly upstreamModel: string
}

/** Path by which a channel's address selects the second version of the protocol. */
const VERSION_2 = /\/v2$/

/** Fields that the second version refuses and for which it has no replacement. */
const NOT_IN_VERSION_2 = ['max_chunk_per_doc', 'max_chunks_per_doc', 'overlap_tokens'] as const

/**
 * Adapts the request to a channel: maps the model's name, and renames fields for the upstream's version of
 * the protocol. The first version limits chunks by `max_chunks_per_doc`, which is added if absent. The second
 * accepts documents only as texts and refuses unknown fields; it returns no documents, so the gateway adds
 * them to the response. In pass-through mode only the name is mapped (`passThrough` is the gateway's option;
 * the channel has its own).
 */
export function gateRerankRequest(
  scan: ScannedObject,
  request: RerankRequest,
  channel: UpstreamSettings,
  passThrough: boolean,
): GatedRerank {
  const remove: string[] = []
  const replace = new Map<string, string>()
  const upstreamModel = channel.model_mapping.get(request.model) ?? request.model
  if (upstreamModel !== scan.value('model')) replace.set('model', JSON.stringify(upstreamModel))
  const isOpen = passThrough || channel.pass_through
  if (!isOpen) {
    if (VERSION_2.test(channel.base_url)) {
      const texts = documentTexts(scan, request)
      if (texts !== undefined) replace.set('documents', texts)
      remove.push('return_documents', ...NOT_IN_VERSION_2)
    } else if (isPresent(scan, 'max_chunk_per_doc') && !scan.has('max_chunks_per_doc')) {
      replace.set('max_chunks_per_doc', String(scan.value('max_chunk_per_doc')))
    }
  }
  const { body, dropped } = editRequest(scan, channel, isOpen, { remove, replace })
  const unsupported = NOT_IN_VERSION_2.filter((field) => remove.includes(field) && isPresent(scan, field))
  return { body, upstreamModel, dropped: [...unsupported, ...dropped] }
}

/** Renders the documents as an array of texts. Returns undefined if they already are one. */
function documentTexts(scan: ScannedObject, { documents }: RerankRequest): string | undefined {
  if (documents.every((document) => scan.kindOf(document) === 'string')) return undefined
  return `[${documents.map((document) => written(scan, textNode(scan, document) ?? document).toString()).join(',')}]`
}
