/** Roles of users, as stored and shown; a higher role has the rights of all lower ones. */
export const Role = { user: 1, admin: 10, root: 100 } as const

/** Role of a user: 1 is a common user, 10 an admin, 100 root. */
export type Role = (typeof Role)[keyof typeof Role]

/** The roles, lowest first. */
export const ROLES: readonly Role[] = Object.values(Role)
