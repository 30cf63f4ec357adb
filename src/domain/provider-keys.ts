import { createPrivateKey } from 'node:crypto'

/** Access key of an AWS account. */
export interface AwsKey {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** Session token of temporary AWS credentials; undefined for permanent ones. */
  readonly sessionToken?: string
}

/**
 * Credentials of a Bedrock channel: an account's access key, which signs requests, or a Bedrock API key,
 * which is sent as it is.
 */
export type BedrockKey = { readonly aws: AwsKey } | { readonly bearer: string }

/** The accepted forms of a Bedrock channel's key, for error messages. */
export const BEDROCK_KEY_FORMS =
  'ACCESS_KEY_ID:SECRET_ACCESS_KEY, ACCESS_KEY_ID:SECRET_ACCESS_KEY:SESSION_TOKEN, or a Bedrock API key'

/** Parses the key of a Bedrock channel; undefined if the text has none of the accepted forms. */
export function parseBedrockKey(text: string): BedrockKey | undefined {
  const [id = '', secret, token, ...rest] = text.split(':')
  if (secret === undefined) return /^[\w+/=.-]{20,}$/.test(id) ? { bearer: text } : undefined
  if (!/^[A-Z0-9]{8,128}$/.test(id)) return undefined
  if (!/^[\w+/=-]{16,}$/.test(secret) || token === '' || rest.length > 0) return undefined
  return {
    aws: { accessKeyId: id, secretAccessKey: secret, ...(token !== undefined && { sessionToken: token }) },
  }
}

/** Key of a Google service account. */
export interface ServiceAccount {
  readonly email: string
  readonly privateKey: string
  readonly privateKeyId: string | undefined
  readonly project: string | undefined
  readonly tokenUri: string
}

const TOKEN_URI = 'https://oauth2.googleapis.com/token'

/** Parses the JSON of a service account's key. For an invalid text, returns what was expected. */
export function parseServiceAccount(text: string): ServiceAccount | { readonly expected: string } {
  const fields = recordOf(text)
  if (!fields) return { expected: "the JSON of a service account's key" }
  const textOf = (name: string): string | undefined => {
    const value = fields[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const email = textOf('client_email')
  const privateKey = textOf('private_key')
  if (email === undefined) return { expected: "a service account's key with client_email" }
  if (privateKey === undefined || !isPrivateKey(privateKey))
    return { expected: "a service account's key with an RSA private_key in PEM" }
  return {
    email,
    privateKey,
    privateKeyId: textOf('private_key_id'),
    project: textOf('project_id'),
    tokenUri: textOf('token_uri') ?? TOKEN_URI,
  }
}

function isPrivateKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'rsa'
  } catch {
    return false
  }
}

function recordOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}
