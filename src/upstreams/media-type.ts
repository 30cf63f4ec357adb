/**
 * Matches a media type: `type/subtype`, then parameters whose values are tokens or quoted texts (RFC 9110,
 * 8.3.1).
 */
const MEDIA_TYPE =
  /^[!#$%&'*+.^`|~\w-]+\/[!#$%&'*+.^`|~\w-]+(?:[ \t]*;[ \t]*[!#$%&'*+.^`|~\w-]+=(?:[!#$%&'*+.^`|~\w-]+|"(?:[\t !#-[\]-~]|\\[\t -~])*"))*[ \t]*;?$/

/** Whether a text is a media type in ASCII, with optional parameters. */
export function isMediaType(text: string): boolean {
  return MEDIA_TYPE.test(text)
}
