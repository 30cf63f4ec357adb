import { toMoonshotSchema } from './moonshot-schema.ts'
import type { SchemaWork } from './schema-work.ts'
import { isStrictSchema } from './strict-subset.ts'

/** What a server that speaks chat or responses accepts of schemas. */
export interface ServerSchemas {
  /** Whether a schema can be enforced with `strict: true` for a model. */
  enforces(schema: string, model: string): boolean
  /** Whether responses can be requested by a schema, and not only as any JSON object. */
  readonly takesFormat: boolean
  /** Converts a schema to the form that the server accepts; absent if it accepts any. */
  readonly convert?: (schema: string, work: SchemaWork) => string
}

/** The rules of one server: its host, and the page that documents them. */
interface ServerRow extends ServerSchemas {
  readonly host: RegExp
  readonly source: string
}

/** OpenAI's rules, which unknown servers are assumed to share. Azure and OpenRouter document the same ones. */
export const OPENAI_SCHEMAS: ServerSchemas = { enforces: isStrictSchema, takesFormat: true }

const always = (): boolean => true
const never = (): boolean => false

const GROQ_STRICT_MODELS = /\bgpt-oss-(?:20|120)b/i
const CEREBRAS_MAX_SCHEMA = 5000
const TYPE_LIST = /"type"\s*:\s*\[/

/** Servers with other rules than OpenAI's. */
const SERVERS: readonly ServerRow[] = [
  {
    // All functions of a request would have to be strict, at the address for beta features.
    host: /(?:^|\.)deepseek\.com$/,
    source: 'https://api-docs.deepseek.com/guides/tool_calls and /guides/json_mode',
    enforces: never,
    takesFormat: false,
  },
  {
    host: /(?:^|\.)groq\.com$/,
    source: 'https://console.groq.com/docs/structured-outputs',
    enforces: (schema, model) => GROQ_STRICT_MODELS.test(model) && isStrictSchema(schema),
    takesFormat: true,
  },
  {
    host: /(?:^|\.)cerebras\.ai$/,
    source: 'https://inference-docs.cerebras.ai/capabilities/structured-outputs',
    enforces: (schema) =>
      schema.length <= CEREBRAS_MAX_SCHEMA && !TYPE_LIST.test(schema) && isStrictSchema(schema),
    takesFormat: true,
  },
  {
    host: /(?:^|\.)mistral\.ai$/,
    source: 'https://docs.mistral.ai/capabilities/structured-output/custom_structured_output',
    enforces: always,
    takesFormat: true,
  },
  {
    // Tools are always strict, and all keywords are accepted, some without being enforced.
    host: /(?:^|\.)x\.ai$/,
    source: 'https://docs.x.ai/developers/model-capabilities/text/structured-outputs',
    enforces: always,
    takesFormat: true,
  },
  {
    // Tools are strict by default.
    host: /(?:^|\.)(?:moonshot\.(?:ai|cn)|kimi\.com)$/,
    source:
      'https://github.com/MoonshotAI/walle/blob/main/docs/mfjs-spec.md and https://platform.kimi.ai/docs/api/chat',
    enforces: always,
    takesFormat: true,
    convert: toMoonshotSchema,
  },
  {
    host: /(?:^|\.)fireworks\.ai$/,
    source: 'https://docs.fireworks.ai/structured-responses/structured-response-formatting',
    enforces: always,
    takesFormat: true,
  },
  {
    host: /(?:^|\.)together\.(?:xyz|ai)$/,
    source: 'https://docs.together.ai/docs/json-mode',
    enforces: always,
    takesFormat: true,
  },
]

/** Finds what the server with this host name accepts of schemas. */
export function serverSchemas(host: string): ServerSchemas {
  return SERVERS.find((row) => row.host.test(host)) ?? OPENAI_SCHEMAS
}
