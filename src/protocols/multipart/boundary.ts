import { GatewayError } from '../../errors.ts'

/** Boundary of RFC 2046, 5.1.1. */
const BOUNDARY = /^[\w'()+,./:=? -]{0,69}[\w'()+,./:=?-]$/
const PARAMETER = /;[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))/g

/** Whether a content type is that of a form with files. */
export function isForm(contentType: string | undefined): boolean {
  return contentType !== undefined && /^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType)
}

/** The boundary that a content type states; throws `invalid_request` without a valid one, or with two. */
export function boundaryOf(contentType: string): string {
  const stated = [...contentType.matchAll(PARAMETER)].filter(([, name]) => name?.toLowerCase() === 'boundary')
  const [only] = stated
  const boundary = only?.[2]?.replaceAll(/\\(.)/g, '$1') ?? only?.[3] ?? ''
  if (stated.length === 1 && BOUNDARY.test(boundary)) return boundary
  throw new GatewayError(
    'invalid_request',
    stated.length > 1
      ? 'the content-type of the form states two boundaries'
      : 'the content-type of the form states no valid boundary, as in "multipart/form-data; boundary=…"',
  )
}
