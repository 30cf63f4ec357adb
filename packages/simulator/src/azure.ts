import { type Fields, asFields } from './fields.ts'
import { bearerToken, type Call, type Upstream } from './upstream.ts'

const DEPLOYED = /^\/openai\/deployments\/([^/]+)(\/.+)$/
const NAMED = /^\/openai(?:\/v1)?(\/.+)$/

/**
 * Creates a simulated Azure out of an upstream of OpenAI's API: with its paths by deployment and a version in the query,
 * and those of its v1 API. Deployments have the names of the models.
 */
export function azureUpstream(upstream: Upstream): Upstream {
  return {
    ...upstream,
    bodyIfServed: (call) => upstream.bodyIfServed(unprefixed(call)),
    reply: (body, model, stamp, call) => upstream.reply(body, model, stamp, unprefixed(call)),
    keyOf: (headers) => String(headers['api-key'] ?? '') || bearerToken(headers),
  }
}

function unprefixed(call: Call): Call {
  const [, model, deployed] = DEPLOYED.exec(call.path) ?? []
  if (deployed !== undefined) return { ...call, path: deployed, body: withModel(call.body, model) }
  const [, path] = NAMED.exec(call.path) ?? []
  return path === undefined ? call : { ...call, path }
}

function withModel(body: Fields, model: string | undefined): Fields {
  return asFields({ ...body, model: decodeURIComponent(model ?? '') })
}
