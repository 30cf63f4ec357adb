const given = document.querySelector<HTMLMetaElement>('meta[name="base-path"]')?.content ?? ''

/** The path below which the gateway serves everything, such as `/ai`; empty without one, and in development. */
export const basePath = given.startsWith('/') ? given : ''

/** The address of the gateway as clients of the API use it, without a slash at its end. */
export const gatewayAddress = (): string => location.origin + basePath
