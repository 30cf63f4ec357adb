import { edit } from '../../protocols/json/json-edit.ts'
import { scanObject } from '../../protocols/json/json-scan.ts'

/** Version of the messages protocol that Vertex takes in the body. */
const VERSION = 'vertex-2023-10-16'

/**
 * A messages request as `rawPredict` takes it: the version in the body and, unless `keepsModel`, the model in
 * the path alone. All other bytes stay.
 */
export function rawPredictBody(body: Buffer, keepsModel: boolean): Buffer {
  const scan = scanObject(body)
  const replace = new Map<string, string>()
  if (!scan.has('anthropic_version')) replace.set('anthropic_version', JSON.stringify(VERSION))
  return edit(body, scan, { remove: keepsModel ? [] : ['model'], replace })
}
