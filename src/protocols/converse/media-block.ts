import { GatewayError } from '../../errors.ts'
import type { MediaSource } from '../conversation.ts'

/** Kind of a block of media. */
type MediaKind = 'image' | 'document' | 'video' | 'audio'

/** Formats by media type, as the upstream names them. */
const FORMATS: ReadonlyMap<string, readonly [kind: MediaKind, format: string]> = new Map([
  ['image/png', ['image', 'png']],
  ['image/jpeg', ['image', 'jpeg']],
  ['image/gif', ['image', 'gif']],
  ['image/webp', ['image', 'webp']],
  ['application/pdf', ['document', 'pdf']],
  ['text/csv', ['document', 'csv']],
  ['application/msword', ['document', 'doc']],
  ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', ['document', 'docx']],
  ['application/vnd.ms-excel', ['document', 'xls']],
  ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', ['document', 'xlsx']],
  ['text/html', ['document', 'html']],
  ['text/plain', ['document', 'txt']],
  ['text/markdown', ['document', 'md']],
  ['video/mp4', ['video', 'mp4']],
  ['video/quicktime', ['video', 'mov']],
  ['video/webm', ['video', 'webm']],
  ['video/x-matroska', ['video', 'mkv']],
  ['video/x-flv', ['video', 'flv']],
  ['video/mpeg', ['video', 'mpeg']],
  ['video/x-ms-wmv', ['video', 'wmv']],
  ['video/3gpp', ['video', 'three_gp']],
  ['audio/mpeg', ['audio', 'mp3']],
  ['audio/wav', ['audio', 'wav']],
  ['audio/ogg', ['audio', 'ogg']],
  ['audio/opus', ['audio', 'opus']],
  ['audio/flac', ['audio', 'flac']],
  ['audio/aac', ['audio', 'aac']],
  ['audio/mp4', ['audio', 'm4a']],
  ['audio/webm', ['audio', 'webm']],
])

/** Type of files whose type is unknown: a document, of the kind that clients send most. */
const UNKNOWN = 'application/octet-stream'
const MAX_NAME = 200

/**
 * Writes media as blocks. Names of documents must be unique in a request, and differ in a few characters from
 * those of files; absent ones are numbered.
 */
export class MediaBlocks {
  readonly #names = new Set<string>()

  /** Writes the JSON text of a block; throws `invalid_request` for a type that no model takes. */
  write(source: MediaSource, name: string | undefined): string {
    if (source.kind === 'url')
      throw new GatewayError('invalid_request', 'A file that is given by its URL could not be passed on.')
    const [type = ''] = source.mediaType.toLowerCase().split(';')
    const [kind, format] = FORMATS.get(type.trim() === UNKNOWN ? 'application/pdf' : type.trim()) ?? []
    if (kind === undefined)
      throw new GatewayError('invalid_request', `Files of this type cannot be sent to this model's provider.`)
    const block = {
      format,
      ...(kind === 'document' && { name: this.#unique(documentName(name)) }),
      source: { bytes: source.data },
    }
    return JSON.stringify({ [kind]: block })
  }

  #unique(name: string): string {
    let unique = name
    for (let number = 2; this.#names.has(unique); number++) unique = `${name} ${number}`
    this.#names.add(unique)
    return unique
  }
}

/** Keeps what the upstream takes of a file's name: letters, digits, single spaces and a few marks. */
function documentName(name = ''): string {
  const plain = name
    .replace(/\.[A-Za-z\d]{1,5}$/, '')
    .replaceAll(/[^A-Za-z\d\s()[\]-]/g, '-')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, MAX_NAME)
  return plain === '' || /^-+$/.test(plain) ? 'Document' : plain
}
