import type { Channel } from '../../domain/channel.ts'
import { isPresent } from '../field-check.ts'
import { edit } from '../json/json-edit.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import { textNode, written } from './document.ts'
import type { RerankRequest } from './request.ts'

/** A request as it goes to a channel. */
export interface GatedRerank {
  /** The caller's own Buffer where nothing had to change. */
  readonly body: Buffer
  /** The model's name as the upstream knows it. */
  readonly upstreamModel: string
  /** Fields that the upstream's version does not know. */
  readonly dropped: readonly string[]
}

/** The second version of the protocol, as the channel's address tells. */
const VERSION_2 = /\/v2$/

/** Fields that the second version refuses to see, and whose meaning is lost without them. */
const NOT_IN_VERSION_2 = ['max_chunk_per_doc', 'max_chunks_per_doc', 'overlap_tokens'] as const

/**
 * The request for a channel: the model's mapped name, and what the upstream's version of the protocol calls
 * differently. The first version caps chunks by `max_chunks_per_doc`, which is added where the caller did not
 * write it. The second takes documents as texts alone and refuses fields that it does not know; it returns no
 * documents, for which the gateway stands in. In pass-through mode (`passThrough` is the gateway's option,
 * the channel has its own flag) only the name is mapped.
 */
export function gateRerankRequest(
  scan: ScannedObject,
  request: RerankRequest,
  channel: Channel,
  passThrough: boolean,
): GatedRerank {
  const remove: string[] = []
  const replace = new Map<string, string>()
  const upstreamModel = channel.modelMapping.get(request.model) ?? request.model
  if (upstreamModel !== request.model) replace.set('model', JSON.stringify(upstreamModel))
  if (!passThrough && !channel.passThrough) {
    if (VERSION_2.test(channel.baseUrl)) {
      const texts = documentTexts(scan, request)
      if (texts !== undefined) replace.set('documents', texts)
      remove.push('return_documents', ...NOT_IN_VERSION_2)
    } else if (isPresent(scan, 'max_chunk_per_doc') && !scan.has('max_chunks_per_doc')) {
      replace.set('max_chunks_per_doc', String(scan.value('max_chunk_per_doc')))
    }
  }
  return {
    body: edit(scan.bytes, scan, { remove, replace }),
    upstreamModel,
    dropped: NOT_IN_VERSION_2.filter((field) => remove.includes(field) && isPresent(scan, field)),
  }
}

/** The documents as an array of texts; undefined where they are one already. */
function documentTexts(scan: ScannedObject, { documents }: RerankRequest): string | undefined {
  if (documents.every((document) => scan.kindOf(document) === 'string')) return undefined
  return `[${documents.map((document) => written(scan, textNode(scan, document) ?? document).toString()).join(',')}]`
}
