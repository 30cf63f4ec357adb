import { GatewayError } from '../../errors.ts'

/** Head of a part. */
export interface PartHead {
  readonly name: string
  /** Undefined for a field that is not a file. */
  readonly filename: string | undefined
  /** Empty if none is stated. */
  readonly contentType: string
}

const FIELD = /^([\w!#$%&'*+.^`|~-]+):[ \t]*(.*?)[ \t]*$/s
/** A parameter: a token, or a quoted text in which a backslash escapes the next character. */
const PARAMETER = /;[ \t]*([\w!#$&'+.^`|~-]+\*?)=(?:"((?:[^"\\\r\n]|\\[^\r\n])*)"|([^\s;"]+))[ \t]*/y
/** Encodings that leave the bytes as they are. */
const IDENTITY = /^(?:7bit|8bit|binary)$/i

/**
 * Reads the head of a part. Other readers must not be able to understand it in another way, as the client is
 * charged for the model in it: whatever they might is an `invalid_request`.
 */
export function readPartHead(bytes: Buffer): PartHead {
  let disposition: string | undefined
  let contentType = ''
  for (const line of bytes.toString().split('\r\n')) {
    const [, name = '', value = ''] = FIELD.exec(line) ?? []
    if (name === '' || /[\r\n\0]/.test(value)) throw refusal('a header line of a part cannot be read')
    switch (name.toLowerCase()) {
      case 'content-disposition':
        if (disposition !== undefined) throw refusal('a part has two content-dispositions')
        disposition = value
        break
      case 'content-type':
        contentType = value
        break
      case 'content-transfer-encoding':
        if (!IDENTITY.test(value)) throw refusal('a part is encoded; send its bytes as they are')
    }
  }
  return { ...named(disposition), contentType }
}

function named(disposition: string | undefined): Pick<PartHead, 'name' | 'filename'> {
  const parameters = new Map<string, string>()
  if (disposition === undefined || !/^form-data[ \t]*(?:;|$)/i.test(disposition))
    throw refusal('a part has no "content-disposition: form-data"')
  const at = disposition.indexOf(';')
  PARAMETER.lastIndex = at < 0 ? disposition.length : at
  while (PARAMETER.lastIndex < disposition.length) {
    const found = PARAMETER.exec(disposition)
    if (!found) throw refusal('the content-disposition of a part cannot be read')
    const [, key = '', quoted, plain = ''] = found
    const name = key.toLowerCase()
    if (parameters.has(name)) throw refusal('the content-disposition of a part names something twice')
    parameters.set(name, quoted ?? plain)
  }
  const name = parameters.get('name')
  if (name === undefined || name === '' || parameters.has('name*')) throw refusal('a part has no name')
  // Some readers take the backslash for an escape, others for itself.
  if (name.includes('\\')) throw refusal('the name of a part has a backslash')
  return { name, filename: parameters.get('filename') ?? parameters.get('filename*') }
}

function refusal(reason: string): GatewayError {
  return new GatewayError('invalid_request', `the form of the request is invalid: ${reason}`)
}
