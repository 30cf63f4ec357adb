import {
  FILE_NAME_MEMBERS,
  MEDIA_MEMBERS,
  MEDIA_TYPE_MEMBERS,
  PROTOCOL_TERMS,
  SEALED_MEMBERS,
  TOKEN_ID_MEMBERS,
} from './guarded-member-names.ts'
import { isTerm, type ValueKind } from './guarded-values.ts'
import type { Node, ScannedObject } from './json/scanned-object.ts'
import type { FileFacts } from './text-file.ts'

/** A member of a request: how its value is read, and what is stated about the file that it may be. */
export interface MemberKind {
  readonly kind: ValueKind
  readonly file?: FileFacts
}

/** A member whose value is a text. */
export const TEXT_MEMBER: MemberKind = { kind: 'text' }
/** A member whose value is a word of the protocol, if it looks like one. */
export const TERM_MEMBER: MemberKind = { kind: 'term' }
const SEALED: MemberKind = { kind: 'sealed' }
/** Maximum length of the JSON of a word of a protocol, all of whose characters may be escaped. */
const MAX_TERM_JSON = 6 * 64 + 2

/** How the strings of a member of a request are read. `docs/guards.md: What is no text`. */
export function memberKind(
  scan: ScannedObject,
  object: Node,
  name: string,
  type: string,
  role: string | undefined,
  fileName: string | undefined,
): MemberKind {
  if (PROTOCOL_TERMS.has(name)) return SEALED_MEMBERS.has(name) ? SEALED : TERM_MEMBER
  if (name === 'name') return role === undefined ? TERM_MEMBER : TEXT_MEMBER
  if (name === 'data' && (type === 'redacted_thinking' || type === 'reasoning.encrypted')) return SEALED
  const isMedia =
    MEDIA_MEMBERS.has(name) ||
    (name === 'result' && type === 'image_generation_call') ||
    (name === 'data' && type !== 'text' && statesMediaType(scan, object))
  if (!isMedia) return TEXT_MEMBER
  const mediaType = firstMember(scan, object, MEDIA_TYPE_MEMBERS)
  return {
    kind: 'media',
    file: { mediaType, name: firstMember(scan, object, FILE_NAME_MEMBERS) || (fileName ?? '') },
  }
}

function firstMember(scan: ScannedObject, object: Node, names: readonly string[]): string {
  for (const name of names) {
    const value = scan.memberOf(object, name)
    if (value !== undefined && scan.kindOf(value) === 'string') return scan.parse(value) as string
  }
  return ''
}

export function statesMediaType(scan: ScannedObject, object: Node): boolean {
  return MEDIA_TYPE_MEMBERS.some((kind) => scan.memberOf(object, kind) !== undefined)
}

/** Whether a string looks like a word of a protocol. */
export function isTermAt(scan: ScannedObject, node: Node): boolean {
  const [from, to] = [scan.startOf(node), scan.endOf(node)]
  return to - from <= MAX_TERM_JSON && isTerm(scan.parse(node) as string)
}

/**
 * Whether a request has token ids in place of a text, at an endpoint that reads them. Guards cannot read what they
 * stand for.
 */
export function hasTokenIds(scan: ScannedObject): boolean {
  return TOKEN_ID_MEMBERS.some((name) => {
    const member = scan.span(name)
    return member !== undefined && holdsNumber(scan, member.node)
  })
}

function holdsNumber(scan: ScannedObject, node: Node): boolean {
  const kind = scan.kindOf(node)
  return kind === 'number' || (kind === 'array' && scan.elements(node).some((one) => holdsNumber(scan, one)))
}
