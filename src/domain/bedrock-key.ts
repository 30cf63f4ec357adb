/** Access key of an AWS account. */
export interface AwsKey {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Only for temporary credentials. */
  readonly sessionToken?: string
}

/**
 * Credentials of a Bedrock channel: an account's access key, which signs requests, or a Bedrock API key,
 * which is sent as it is.
 */
export type BedrockKey = { readonly aws: AwsKey } | { readonly bearer: string }

/** The forms of a key, for messages. */
export const BEDROCK_KEY_FORMS =
  'ACCESS_KEY_ID:SECRET_ACCESS_KEY, ACCESS_KEY_ID:SECRET_ACCESS_KEY:SESSION_TOKEN, or a Bedrock API key'

/** Parses a key; undefined if it has none of the `BEDROCK_KEY_FORMS`. */
export function parseBedrockKey(text: string): BedrockKey | undefined {
  const [id = '', secret, token, ...rest] = text.split(':')
  if (secret === undefined) return /^[\w+/=.-]{20,}$/.test(id) ? { bearer: text } : undefined
  if (!/^[A-Z0-9]{8,128}$/.test(id)) return undefined
  if (!/^[\w+/=-]{16,}$/.test(secret) || token === '' || rest.length > 0) return undefined
  return {
    aws: { accessKeyId: id, secretAccessKey: secret, ...(token !== undefined && { sessionToken: token }) },
  }
}
