/** Bytes from which encoded forms are looked for: those of shorter secrets may be parts of ordinary words. */
const MIN_BYTES = 8
/** Bytes of one pattern; the encoded forms of a longer secret are found in pieces. */
const MAX_BYTES = 256

/**
 * Source of a regular expression that matches a secret as it is, percent-encoded, in hexadecimal, and within
 * base64 or base64url of any text around it (`Basic` credentials), in whatever case and alignment.
 */
export function secretForms(secret: string): string {
  const bytes = Buffer.from(secret)
  const forms = [literal(secret)]
  if (bytes.length < MIN_BYTES) return forms[0] ?? ''
  for (let start = 0; start < bytes.length; start += MAX_BYTES) {
    // A short rest is a part of the piece before it.
    const piece = bytes.subarray(Math.max(0, Math.min(start, bytes.length - MIN_BYTES)), start + MAX_BYTES)
    forms.push(percentEncoded(piece), hexadecimal(piece), ...[0, 1, 2].map((before) => base64(piece, before)))
  }
  return forms.join('|')
}

function literal(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`)
}

/** Bytes of which each may be encoded, once or twice. */
function percentEncoded(bytes: Buffer): string {
  return Array.from(bytes, (byte) => {
    const encoded = `%(?:25)?${hexadecimal(Buffer.of(byte))}`
    return byte > 0x20 && byte < 0x7f ? `(?:${literal(String.fromCharCode(byte))}|${encoded})` : encoded
  }).join('')
}

function hexadecimal(bytes: Buffer): string {
  return bytes.toString('hex').replaceAll(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)
}

/** Base64 that these bytes alone determine, `before` bytes after the start of a group of three. */
function base64(bytes: Buffer, before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
  const first = Math.ceil((before * 8) / 6)
  const last = Math.floor(((before + bytes.length) * 8) / 6)
  // The characters at both ends have bits of the secret, too.
  const start = before === 0 ? '' : ANY
  const end = (before + bytes.length) % 3 === 0 ? '' : `${ANY}${PADDING}`
  const inner = text.slice(first, last).replaceAll(/[+/]/g, (sign) => SIGNS[sign] ?? '')
  return `${start}${inner}${end}`
}

const SIGNS: Readonly<Record<string, string>> = { '+': '(?:[+-]|%2[Bb])', '/': '(?:[/_]|%2[Ff])' }
const ANY = '(?:[\\w+/-]|%2[BbFf])?'
const PADDING = '(?:=|%3[Dd]){0,2}'
