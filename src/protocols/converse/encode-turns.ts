import type { Dropped } from '../codec.ts'
import type { Part, Turn } from '../conversation.ts'
import type { ConverseCapabilities } from '../converse-capabilities.ts'
import { arrayOf } from '../json/json-text.ts'
import { drop } from './dropped-fields.ts'
import { BlockWriter, PLACEHOLDER } from './encode-blocks.ts'

/** Part with its blocks; there is at least one. */
interface Written {
  readonly kind: Part['kind']
  readonly blocks: readonly string[]
}

interface WrittenTurn {
  readonly role: Turn['role']
  readonly parts: readonly Written[]
}

/**
 * Encodes turns as messages of alternating roles, beginning with the user's. Tool results come first in their
 * turn. A turn without text, and a document without text next to it, get a placeholder, because upstreams
 * refuse both.
 */
export function encodeTurns(
  turns: readonly Turn[],
  capabilities: ConverseCapabilities,
  dropped: Dropped,
): string[] {
  const writer = new BlockWriter(capabilities, dropped)
  const merged: { readonly role: Turn['role']; readonly parts: Written[] }[] = []
  for (const { role, parts } of withTrimmedPrefill(turns)) {
    const written = parts
      .filter((part) => isSayable(part, role, dropped))
      .map((part) => ({ kind: part.kind, blocks: writer.write(part) }))
      .filter(({ blocks }) => blocks.length > 0)
    const last = merged.at(-1)
    if (last?.role === role) last.parts.push(...written)
    else if (role === 'user' || written.length > 0) merged.push({ role, parts: written })
  }
  if (merged[0]?.role !== 'user') merged.unshift({ role: 'user', parts: [] })
  return merged
    .map(resultsFirst)
    .flatMap((turn) => (capabilities.mixesTools ? [turn] : unmixed(turn, dropped)))
    .map(({ role, parts }) => `{"role":"${role}","content":${arrayOf(withWords(parts))}}`)
}

/**
 * Trims a prefill, the beginning of a reply that the model continues, because upstreams refuse trailing white
 * space in it.
 */
function withTrimmedPrefill(turns: readonly Turn[]): readonly Turn[] {
  const turn = turns.at(-1)
  const part = turn?.parts.at(-1)
  if (turn?.role !== 'assistant' || part?.kind !== 'text') return turns
  const parts = [...turn.parts.slice(0, -1), { ...part, text: part.text.trimEnd() }]
  return [...turns.slice(0, -1), { ...turn, parts }]
}

/** Only users may send files. */
function isSayable(part: Part, role: Turn['role'], dropped: Dropped): boolean {
  const isForeign = part.kind === 'media' && role === 'assistant'
  if (isForeign) drop(dropped, 'content')
  return !isForeign
}

function resultsFirst({ role, parts }: WrittenTurn): WrittenTurn {
  return { role, parts: [...parts.filter(isResult), ...parts.filter((part) => !isResult(part))] }
}

/** Separates tool results from the user's other parts, and drops the parts next to calls. */
function unmixed(turn: WrittenTurn, dropped: Dropped): WrittenTurn[] {
  const { role, parts } = turn
  if (role === 'assistant') {
    const calls = parts.filter(({ kind }) => kind === 'tool-call')
    if (calls.length === 0 || calls.length === parts.length) return [turn]
    drop(dropped, 'content')
    return [{ role, parts: calls }]
  }
  const results = parts.filter(isResult)
  const others = parts.filter((part) => !isResult(part))
  if (results.length === 0 || others.length === 0) return [turn]
  return [
    { role, parts: results },
    { role: 'assistant', parts: [] },
    { role, parts: others },
  ]
}

function isResult({ kind }: Written): boolean {
  return kind === 'tool-result'
}

function withWords(parts: readonly Written[]): readonly string[] {
  const blocks = parts.flatMap((part) => part.blocks)
  const hasDocument = parts.some((part) => part.blocks[0]?.startsWith('{"document"') === true)
  const isSilent = hasDocument && parts.every(({ kind }) => kind !== 'text')
  return blocks.length === 0 || isSilent ? [...blocks, PLACEHOLDER] : blocks
}
