import type { UpstreamSettings } from '../../upstream-settings.ts'
import { type EditedRequest, editRequest } from '../../edit-request.ts'
import { isSignatureEnvelope } from '../../signature-envelope.ts'
import {
  renderArray,
  applyEdits,
  type ElementChange,
  replaceMemberValue,
  keepMembers,
} from '../../json/json-edit.ts'
import { scanObject } from '../../json/json-scan.ts'
import type { Member, Node, ScannedObject } from '../../json/scanned-object.ts'
import { modelResourceName } from '../model-name.ts'
import { mayHoldSealedSignature, UNSIGNED_CALL_SIGNATURE } from '../signature.ts'
import { camelCase, valueNodeOf, snakeCase, topMember, parseTopMember } from '../field-spelling.ts'

/** Names of the service tier in a request. It is removed unless the channel allows `service_tier`. */
const TIER = ['serviceTier', snakeCase('serviceTier')] as const

/** Fields of `generationConfig` that choose a different model. */
const ROUTING_CONFIG: readonly string[] = ['routingConfig', 'modelSelectionConfig']

/**
 * The model of a request: its name in the path, its name at the upstream, and whether the model needs
 * signatures.
 */
export interface GeminiModelNames {
  readonly name: string
  readonly upstreamModel: string
  /**
   * Returns whether function calls without a signature get a placeholder for it. Undefined if the contents
   * are only texts, so that there are no calls.
   */
  readonly requiresSignatures: (() => boolean) | undefined
}

/**
 * Changes a request for a channel of this protocol: removes the service tier, settings that choose a
 * different model, and signatures of other providers; adds placeholder signatures to calls if the model
 * requires signatures; and disables storage if the channel demands it. All other bytes stay as the client
 * wrote them; the model's name is in the path. In pass-through mode the tier and the model settings are sent
 * too. `passThrough` switches this mode on for all channels; a channel can also have it on its own.
 */
export function adaptGeminiRequest(
  scan: ScannedObject,
  { name, upstreamModel, requiresSignatures }: GeminiModelNames,
  channel: UpstreamSettings,
  passThrough: boolean,
): EditedRequest {
  const isOpen = passThrough || channel.pass_through
  const remove = isOpen || channel.allow.has('service_tier') ? [] : [...TIER]
  const isStored = channel.disable_store && parseTopMember(scan, 'store') === true
  const replace = new Map(isStored ? [['store', 'false']] : [])
  const contents = requiresSignatures && contentsWithAcceptedSignatures(scan, requiresSignatures)
  if (contents) replace.set(...contents)
  const others: string[] = []
  if (!isOpen && !channel.allow.has('models')) {
    const named = parseTopMember(scan, 'model')
    if (typeof named === 'string' && modelResourceName(named) !== modelResourceName(upstreamModel)) {
      remove.push('model')
      if (modelResourceName(named) !== modelResourceName(name)) others.push('model')
    }
    const config = topMember(scan, 'generationConfig')
    const routing = config && scan.kindOf(config.node) === 'object' ? routingIn(scan, config.node) : []
    if (config && routing.length > 0) {
      others.push(...routing)
      replace.set(config.key, keepMembers(scan, config.node, (key) => !isRouting(key)) ?? '{}')
    }
  }
  const { body, dropped } = editRequest(scan, channel, isOpen, { remove, replace })
  return { body, dropped: [...others, ...dropped] }
}

function isRouting(key: string): boolean {
  return ROUTING_CONFIG.includes(camelCase(key))
}

function routingIn(scan: ScannedObject, config: Node): string[] {
  return ROUTING_CONFIG.filter((field) => valueNodeOf(scan, config, field) !== undefined)
}

const SIGNATURE = 'thoughtSignature'

const CALL = 'functionCall'
/**
 * Bytes without which a body contains no function call: the beginning of `functionCall` or `function_call`,
 * or of an escape sequence, with which the name could be written.
 */
const CALL_MARKS = ['"function', '\\u'].map((mark) => Buffer.from(mark))

/**
 * Returns `contents` with signatures that the upstream accepts, as the name of the member and its JSON text;
 * undefined if nothing must be changed. A signature of another provider, which is enclosed in an envelope, is
 * removed from its part. A thought with such a signature is removed, and a content that is then empty. With
 * `isRequired`, the first call of each step gets the placeholder that Google documents if it has no
 * signature, because the upstream would refuse this turn of another model.
 */
function contentsWithAcceptedSignatures(
  scan: ScannedObject,
  isRequired: () => boolean,
): readonly [key: Member['key'], text: string] | undefined {
  const { bytes } = scan
  const maySign = CALL_MARKS.some((mark) => bytes.includes(mark)) && isRequired()
  if (!maySign && !mayHoldSealedSignature(bytes)) return undefined
  const contents = topMember(scan, 'contents')
  if (!contents || scan.kindOf(contents.node) !== 'array') return undefined
  let isFirstCall = maySign
  const text = renderArray(scan, contents.node, (content): ElementChange => {
    if (!isModels(scan, content)) isFirstCall = maySign
    const parts = valueNodeOf(scan, content, 'parts')
    if (parts === undefined || scan.kindOf(parts) !== 'array') return 'stays'
    const changed = renderArray(scan, parts, (part) => {
      const isCall = valueNodeOf(scan, part, CALL) !== undefined
      const needsSignature = isCall && isFirstCall && isModels(scan, content)
      if (isCall) isFirstCall = false
      return fateOf(scan, part, needsSignature)
    })
    if (changed === undefined) return 'stays'
    return changed === '[]' ? 'goes' : { text: replaceMemberValue(scan, content, parts, changed) }
  })
  return text === undefined ? undefined : [contents.key, text]
}

function isModels(scan: ScannedObject, content: Node): boolean {
  const role = valueNodeOf(scan, content, 'role')
  return role !== undefined && scan.parse(role) === 'model'
}

function fateOf(scan: ScannedObject, part: Node, needsSignature: boolean): ElementChange {
  const signature = valueNodeOf(scan, part, SIGNATURE)
  const value = signature === undefined ? '' : scan.parse(signature)
  const isSealed = typeof value === 'string' && isSignatureEnvelope(Buffer.from(value, 'base64').toString())
  if (!isSealed && (!needsSignature || value !== '')) return 'stays'
  const thought = valueNodeOf(scan, part, 'thought')
  if (isSealed && thought !== undefined && scan.parse(thought) === true) return 'goes'
  const inner = scanObject(Buffer.from(scan.textOf(part)))
  const remove = [SIGNATURE, snakeCase(SIGNATURE)]
  const replace = new Map(needsSignature ? [[SIGNATURE, JSON.stringify(UNSIGNED_CALL_SIGNATURE)]] : [])
  return { text: applyEdits(inner.bytes, inner, { remove, replace }).toString() }
}
