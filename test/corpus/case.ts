import type { ConversionProtocol } from '../../src/protocols/conversation.ts'

/**
 * What the contract says of an input. `unreadable`: no JSON object that we read, refused on every path;
 * `refused`: it breaks the rule of a field; `forwarded`: nothing is wrong with it; `either`: the contract
 * leaves it open.
 */
export type Outcome = 'unreadable' | 'refused' | 'forwarded' | 'either'

/** One input. */
export interface Case {
  readonly name: string
  /** Whose requests it looks like. */
  readonly protocols: readonly ConversionProtocol[]
  readonly outcome: Outcome
  /** What a refusal may be; 400 unless said otherwise. */
  readonly statuses?: readonly number[]
  /** Natively the upstream gets just these bytes. */
  readonly verbatim?: true
  readonly headers?: Readonly<Record<string, string>>
  /** The body, for a model of this name. */
  body(model: string, protocol: ConversionProtocol): string | Buffer
  /** What is sent in place of the body, where that is not the same. */
  wire?(body: Buffer): Buffer
}

export const BOTH: readonly ConversionProtocol[] = ['chat', 'messages']

/** A member of a JSON object: its name, and its value as JSON text. */
export type MemberText = readonly [name: string, value: string]

const LEAST: Record<ConversionProtocol, readonly MemberText[]> = {
  chat: [['messages', '[{"role":"user","content":"hi"}]']],
  messages: [
    ['max_tokens', '100'],
    ['messages', '[{"role":"user","content":"hi"}]'],
  ],
}

/** The least that a request says, with these members in place of its own or added to them. */
export function requestText(
  protocol: ConversionProtocol,
  model: string,
  ...members: readonly MemberText[]
): string {
  const names = new Set(members.map(([name]) => name))
  const least = [['model', JSON.stringify(model)] as const, ...LEAST[protocol]]
  const all = [...least.filter(([name]) => !names.has(name)), ...members]
  return `{${all.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`
}

/** A text without what makes it differ from others only in print. */
export function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 50)}… (${text.length})` : text)
}
