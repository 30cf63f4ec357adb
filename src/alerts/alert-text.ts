import type { AlertType } from '../domain/alert.ts'

/** An alert in words, for people who read it in a chat or a mail. */
export interface AlertText {
  /** A sentence without a full stop. */
  readonly title: string
  /** The facts of the alert, by the names that its data has. */
  readonly facts: readonly (readonly [name: string, value: string])[]
}

type Data = Readonly<Record<string, unknown>>

/** The sentence of each type of alert. */
const TITLES: Readonly<Record<AlertType | 'test', (data: Data) => string>> = {
  'budget.80': (data) => `80 % of the budget of ${subjectOf(data)} are spent`,
  'budget.100': (data) => `The budget of ${subjectOf(data)} is spent`,
  'quota.low': ({ username }) => `The user ${textOf(username)} has little quota left`,
  'channel.resting': ({ channel }) => `The channel ${textOf(channel)} rests`,
  'channel.no_key': ({ channel }) => `The channel ${textOf(channel)} has no usable key`,
  'channel.back': ({ channel }) => `The channel ${textOf(channel)} is back`,
  'gateway.overloaded': () => 'The gateway refuses calls because it is overloaded',
  'price.incomplete': ({ model }) => `A part of the price of ${textOf(model)} is not known`,
  'usage.implausible': ({ channel }) => `The channel ${textOf(channel)} states usage that cannot be true`,
  'model.ending': ({ model, shutdown_date: day }) => `The model ${textOf(model)} ends on ${textOf(day)}`,
  'provider.limit': ({ channel }) =>
    `The limit of the provider of channel ${textOf(channel)} is nearly reached`,
  'config.refused': () => 'A configuration file was refused, and the former configuration stays',
  'mcp.tool_changed': ({ server, tool }) =>
    `The tool ${textOf(tool)} of the MCP server ${textOf(server)} is withheld until its definition is approved`,
  'storage.failed': ({ node }) => `The node ${textOf(node)} cannot charge calls`,
  'storage.back': ({ node }) => `The node ${textOf(node)} charges calls again`,
  test: () => 'A test of this receiver',
}

/** Writes an alert in words. `data` is the JSON text of its data. */
export function alertText(type: string, data: string): AlertText {
  const parsed = JSON.parse(data) as Data
  const title = TITLES[type as AlertType]?.(parsed) ?? type
  const facts = Object.entries(parsed).flatMap(([name, value]): [string, string][] =>
    value === null
      ? []
      : [[name, name.endsWith('_at') && typeof value === 'number' ? timeOf(value) : textOf(value)]],
  )
  return { title, facts }
}

function subjectOf({ subject, name }: Data): string {
  return `the ${textOf(subject)} ${textOf(name)}`
}

/** Maximum characters of a value; a list of models may be long. */
const MAX_LENGTH = 500

function textOf(value: unknown): string {
  const text = Array.isArray(value) ? value.join(', ') : String(value)
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text
}

function timeOf(seconds: number): string {
  return new Date(seconds * 1000).toISOString()
}
