import { fields, list } from './fields.ts'

const LONGEST = 400

/** A sentence or two that answers with what a tool said: JSON is read out, anything else is quoted. */
export function readOut(result: string): string {
  return `According to the tool, ${spoken(parsed(result)).slice(0, LONGEST)}. Is there anything else you would like to know?`
}

function parsed(result: string): unknown {
  try {
    return JSON.parse(result)
  } catch {
    return result.trim() || 'there is nothing to report'
  }
}

function spoken(value: unknown): string {
  if (Array.isArray(value)) return list(value).map(spoken).join('; ') || 'the list is empty'
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(fields(value)).map(
      ([name, member]) => `${name.replaceAll('_', ' ')} is ${spoken(member)}`,
    )
    return members.join(', ') || 'there is nothing to report'
  }
  return String(value)
}
