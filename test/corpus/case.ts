import type { PairedProtocol } from '../samples/paired-protocol.ts'

/**
 * Expected outcome of an input, by the contract. `unreadable`: not a JSON object, refused on every path;
 * `refused`: breaks the rule of a field; `forwarded`: valid; `either`: the contract leaves it open.
 */
export type Outcome = 'unreadable' | 'refused' | 'forwarded' | 'either'

/** One input. */
export interface Case {
  readonly name: string
  /** Dialects whose requests the input resembles. */
  readonly protocols: readonly PairedProtocol[]
  readonly outcome: Outcome
  /** Allowed statuses of a refusal; 400 by default. */
  readonly statuses?: readonly number[]
  /** A native upstream gets exactly these bytes. */
  readonly verbatim?: true
  readonly headers?: Readonly<Record<string, string>>
  /** The body, for a model of this name. */
  body(model: string, protocol: PairedProtocol): string | Buffer
  /** The bytes on the wire, where they differ from the body. */
  wire?(body: Buffer): Buffer
}

export const BOTH: readonly PairedProtocol[] = ['chat', 'messages']

/** A member of a JSON object: its name, and its value as JSON text. */
export type MemberText = readonly [name: string, value: string]

const MINIMAL: Record<PairedProtocol, readonly MemberText[]> = {
  chat: [['messages', '[{"role":"user","content":"hi"}]']],
  messages: [
    ['max_tokens', '100'],
    ['messages', '[{"role":"user","content":"hi"}]'],
  ],
}

/** A minimal request, with these members replaced or added. */
export function requestText(
  protocol: PairedProtocol,
  model: string,
  ...members: readonly MemberText[]
): string {
  const names = new Set(members.map(([name]) => name))
  const minimal = [['model', JSON.stringify(model)] as const, ...MINIMAL[protocol]]
  const all = [...minimal.filter(([name]) => !names.has(name)), ...members]
  return `{${all.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`
}

/** Quotes and shortens a text for messages. */
export function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 50)}… (${text.length})` : text)
}
