import { percentDecoded } from './media-source.ts'

/** Media types whose files are text. */
const IS_TEXT =
  /^(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml|yaml|x-yaml|javascript|x-ndjson|sql|toml|rtf)\b)/i
/** Endings of names of files that are text, and formats that are called by them. */
const TEXT_ENDINGS =
  /^(?:.*\.)?(?:txt|md|markdown|csv|tsv|json|jsonl|xml|html?|ya?ml|toml|ini|log|sql|css|[cm]?[jt]sx?|py|rb|go|rs|java|kt|swift|c|h|cc|cpp|cs|php|sh|tex|rtf)$/i
const DATA_URL = /^data:([^,;]*)((?:;[^,;]*)*),/i
/** Longest beginning of a data URL. */
const MAX_HEADER = 1_024

/**
 * Decodes a file that is text by its stated type, or by its name where that states none; undefined for any
 * other. `data`: a `data:` URL, or base64; a text stays what it is where its type is `text`.
 */
export function textOfFile(
  data: string,
  type: string | undefined,
  name: string | undefined,
): string | undefined {
  const [header, stated, parameters = ''] = DATA_URL.exec(data.slice(0, MAX_HEADER)) ?? []
  if (header === undefined && /^https?:/i.test(data.slice(0, 6))) return undefined
  const known = (stated ?? type ?? '').trim()
  const isNamed = known === '' || /^application\/octet-stream$/i.test(known)
  const isText = isNamed ? name !== undefined && TEXT_ENDINGS.test(name) : IS_TEXT.test(known)
  if (!isText) return undefined
  const rest = header === undefined ? data : data.slice(header.length)
  if (header !== undefined && !/;\s*base64/i.test(parameters)) return percentDecoded(rest).toString()
  return Buffer.from(rest, 'base64').toString()
}
