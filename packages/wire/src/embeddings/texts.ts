import { reroutingName } from '../allowed-field.ts'
import type { Dropped } from '../codec.ts'
import { refuse } from '../field-check.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import type { TextsToEmbed } from '../texts-to-embed.ts'

/** Fields that are converted, or on which the response's format depends. */
const READ: ReadonlySet<string> = new Set(['model', 'input', 'dimensions', 'encoding_format', 'task_type'])

/**
 * Refuses inputs of a checked request that are not texts, because token ids are valid only for their model.
 */
export function checkTexts(scan: ScannedObject): void {
  textsIn(scan)
}

/**
 * Reads a checked request for conversion to another dialect. Fields that cannot be converted are reported.
 * Throws `invalid_request` for inputs that are not texts.
 */
export function decodeTexts(scan: ScannedObject, dropped: Dropped): TextsToEmbed {
  for (const key of scan.members.keys())
    if (!READ.has(key)) dropped.add(key === 'user' ? key : (reroutingName(key) ?? 'unknown'))
  const texts = textsIn(scan).map((text) => scan.parse(text) as string)
  const task = scan.value('task_type')
  return {
    texts,
    dimensions: (scan.value('dimensions') ?? undefined) as number | undefined,
    task: typeof task === 'string' ? task : undefined,
  }
}

function textsIn(scan: ScannedObject): readonly Node[] {
  const node = scan.span('input')?.node as Node
  const nodes = scan.kindOf(node) === 'array' ? scan.elements(node) : [node]
  if (nodes.some((element) => scan.kindOf(element) !== 'string'))
    refuse('input', 'a text or an array of texts, as all of the channels take', 'something else')
  return nodes
}

/** Encodes a request. The purpose of the vectors is dropped and reported. */
export function encodeTexts(
  { texts, dimensions, task }: TextsToEmbed,
  model: string,
  dropped: Dropped,
): Buffer {
  if (task !== undefined) dropped.add('taskType')
  return Buffer.from(JSON.stringify({ model, input: texts, dimensions, encoding_format: 'float' }))
}
